import { CniError, ErrorCode, quoted } from "./errors";

/** Versions of the CNI specification that the plugin supports, oldest first. */
export const VERSIONS = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] as const;
export type CniVersion = (typeof VERSIONS)[number];

/** The version of a configuration without one. */
export const IMPLIED_VERSION: CniVersion = "0.1.0";

/** The version that errors and VERSION carry when the caller's is not known. */
export const CURRENT_VERSION: CniVersion = VERSIONS.at(-1) ?? IMPLIED_VERSION;

export function isSupported(version: string): version is CniVersion {
  return (VERSIONS as readonly string[]).includes(version);
}

/** Whether `version` is `floor` or later. */
export function atLeast(version: CniVersion, floor: CniVersion): boolean {
  return VERSIONS.indexOf(version) >= VERSIONS.indexOf(floor);
}

/** @throws CniError 1 if the version is not supported */
export function requireSupported(version: string, where: string): CniVersion {
  if (isSupported(version)) return version;
  throw new CniError(
    ErrorCode.incompatibleVersion,
    `${where}: CNI version ${quoted(version)} is not supported; supported versions are ${VERSIONS.join(", ")}`,
  );
}
