/** The package's version, also the default tag of the image; a test compares it with package.json. */
export const version = "0.1.0";
