/** Supported processor architectures, with Node's names. */
export const ARCHITECTURES = ["x64", "arm64"] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

/** This machine's architecture. @throws if it is not supported */
export function hostArchitecture(): Architecture {
  const found = ARCHITECTURES.find((architecture) => architecture === process.arch);
  if (found === undefined) throw new Error(`cannot build on ${process.arch}: known are ${ARCHITECTURES.join(", ")}`);
  return found;
}
