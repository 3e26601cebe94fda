/** The first kernels on which nf_tables translates the replies of a connection without separate chains. */
const NATIVE_SINCE = "4.18";
/** The first kernels with statx(2), which the plugin uses to distinguish network namespaces. */
const PLUGIN_SINCE = "4.11";

/** Whether a release from uname(2) is older than a version; false for an unknown format. */
function isOlder(release: string, version: string): boolean {
  const [major, minor] = (/^(\d+)\.(\d+)/.exec(release)?.slice(1) ?? []).map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = version.split(".").map(Number);
  if (major === undefined || minor === undefined) return false;
  return major < wantedMajor || (major === wantedMajor && minor < wantedMinor);
}

/** Why a kernel does not support mode native; undefined if it does. */
export function tooOldForNative(release: string): string | undefined {
  if (!isOlder(release, NATIVE_SINCE)) return undefined;
  return `nf_tables of kernel ${release} does not translate replies, as ${NATIVE_SINCE} and later do`;
}

/** Why the plugin does not run on a kernel; undefined if it does. */
export function tooOldForPlugin(release: string): string | undefined {
  return isOlder(release, PLUGIN_SINCE) ? `its kernel ${release} is older than ${PLUGIN_SINCE}` : undefined;
}
