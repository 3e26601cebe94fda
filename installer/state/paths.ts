import { ATTACHED } from "../../cni/attachments";
import { PLUGIN_TYPE } from "../../cni/stanza";
import { dirname, join } from "../../system/path";
import type { Settings } from "../settings";
import { JOURNAL_NAME } from "./journal";
import type { View } from "./links";

/** Where things lie, as seen from here. */
export interface Paths extends View {
  readonly netDir: string;
  readonly binDir: string;
  /** The same two as paths on the node. */
  readonly onNode: { readonly netDir: string; readonly binDir: string };
  /** The file that runtimes call. */
  readonly plugin: string;
  /** The plugin in this image. */
  readonly image: string;
  /** Directory with the attachments that an uninstall left. */
  readonly attached: string;
  readonly kubeconfig: string;
  readonly journal: string;
  /** What the installation on this node notes of its directories; it does not outlive the node's restart. */
  readonly directories: string;
}

export function pathsOf(settings: Settings): Paths {
  const { netDir, binDir, pluginDir, kubeconfigName, mountPrefix, pluginLog } = settings;
  return {
    mountPrefix,
    mounted: [netDir.here, binDir.here],
    netDir: netDir.here,
    binDir: binDir.here,
    onNode: { netDir: netDir.onNode, binDir: binDir.onNode },
    plugin: join(binDir.here, PLUGIN_TYPE),
    image: join(pluginDir, PLUGIN_TYPE),
    attached: join(binDir.here, ATTACHED),
    kubeconfig: join(netDir.here, kubeconfigName),
    journal: join(netDir.here, JOURNAL_NAME),
    directories: join(dirname(pluginLog), "directories.json"),
  };
}

/** No runtime reads a file of this extension, and {@link isTemporary} finds what a crash left behind. */
export const TEMPORARY = ".linkerd-cni-tmp";

export function isTemporary(name: string): boolean {
  return name.endsWith(TEMPORARY);
}
