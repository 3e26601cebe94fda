import { ATTACHED } from "../../cni/attachments";
import { DROPIN_FILE } from "../../cni/conflist/dropin";
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
  /** Our file in Multus' auxiliary chain; absent if that is not how pods are chained. */
  readonly auxiliary?: string;
  readonly journal: string;
  /** The file that comes and goes for the container runtime to read its configuration again. */
  readonly reread: string;
  /** What the installation on this node notes of its directories; it does not outlive the node's restart. */
  readonly directories: string;
}

export function pathsOf(settings: Settings): Paths {
  const { netDir, binDir, pluginDir, kubeconfigName, mountPrefix, pluginLog, auxiliaryDir } = settings;
  const isAuxiliary = settings.chained && settings.chaining === "auxiliary";
  return {
    mountPrefix,
    mounted: [netDir.here, binDir.here, ...(isAuxiliary ? [auxiliaryDir.here] : [])],
    netDir: netDir.here,
    binDir: binDir.here,
    onNode: { netDir: netDir.onNode, binDir: binDir.onNode },
    plugin: join(binDir.here, PLUGIN_TYPE),
    image: join(pluginDir, PLUGIN_TYPE),
    attached: join(binDir.here, ATTACHED),
    kubeconfig: join(netDir.here, kubeconfigName),
    ...(isAuxiliary ? { auxiliary: join(auxiliaryDir.here, DROPIN_FILE) } : {}),
    journal: join(netDir.here, JOURNAL_NAME),
    reread: join(netDir.here, `linkerd-cni.reread${TEMPORARY}`),
    directories: join(dirname(pluginLog), "directories.json"),
  };
}

/** No runtime reads a file of this extension, and {@link isTemporary} finds what a crash left behind. */
export const TEMPORARY = ".linkerd-cni-tmp";

export function isTemporary(name: string): boolean {
  return name.endsWith(TEMPORARY);
}
