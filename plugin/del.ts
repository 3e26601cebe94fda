import { ATTACHED, attachmentName } from "../cni/attachments";
import { PLUGIN_TYPES } from "../cni/stanza";
import { AT_REMOVEDIR } from "../host/files";
import type { Call } from "./call";

/**
 * Rules end with the pod's network namespace, so there is nothing to undo. After an uninstall, the end of the last
 * attachment removes the executables. The kernel removes an empty directory only once, so one of several concurrent calls is
 * the last.
 */
export function del({ host, env }: Call): string {
  const name = attachmentName(env["CNI_CONTAINERID"] ?? "", env["CNI_IFNAME"] ?? "");
  for (const directory of (env["CNI_PATH"] ?? "").split(":")) {
    const attached = `${directory}/${ATTACHED}`;
    if (host.unlink(`${attached}/${name}`, 0) === 0 && host.unlink(attached, AT_REMOVEDIR) === 0) {
      for (const executable of PLUGIN_TYPES) host.unlink(`${directory}/${executable}`, 0);
    }
  }
  return "";
}
