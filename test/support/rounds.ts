/**
 * With FULL=1, as weekly and before a release, tests make many rounds; else as many as show that what they measure or
 * try works.
 */
export const isFull = process.env["FULL"] === "1";

/** How many rounds a test makes. */
export const rounds = (few: number, many: number): number => (isFull ? many : few);
