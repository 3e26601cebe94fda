import { tooOldForNative } from "../cni/kernel";
import { readText } from "../host/files";
import type { Host } from "../host/port";

const RELEASE = "/proc/sys/kernel/osrelease";

/** Why this machine's kernel is too old for mode native; undefined if it is not, or does not tell. */
export function kernelProblem(host: Host): string | undefined {
  try {
    return tooOldForNative(readText(host, RELEASE).trim());
  } catch {
    return undefined;
  }
}
