import { ATTACHED } from "../../cni/attachments";
import { DROPIN_FILE } from "../../cni/conflist/dropin";
import { PLUGIN_TYPE, PLUGIN_TYPES } from "../../cni/stanza";
import { dirname, join } from "../../system/path";
import type { Settings } from "../settings";
import { JOURNAL_NAME } from "./journal";
import type { View } from "./links";

/** The installer's files, as paths here. */
export interface Paths extends View {
  readonly netDir: string;
  readonly binDir: string;
  /** The same two, as paths on the node. */
  readonly onNode: { readonly netDir: string; readonly binDir: string };
  /** The executables that runtimes call: copies of the image's, by each name. */
  readonly plugins: readonly string[];
  /** The plugin in this image. */
  readonly image: string;
  /** Directory of the attachments left by an uninstall. */
  readonly attached: string;
  readonly kubeconfig: string;
  /** Our file in Multus' auxiliary chain; absent for other ways of chaining. */
  readonly auxiliary?: string | undefined;
  readonly journal: string;
  /** The file that is created and removed to make the container runtime read its configuration again. */
  readonly reread: string;
  /** The installation's note about its directories, which does not outlive a restart of the node. */
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
    plugins: PLUGIN_TYPES.map((name) => join(binDir.here, name)),
    image: join(pluginDir, PLUGIN_TYPE),
    attached: join(binDir.here, ATTACHED),
    kubeconfig: join(netDir.here, kubeconfigName),
    auxiliary: isAuxiliary ? join(auxiliaryDir.here, DROPIN_FILE) : undefined,
    journal: join(netDir.here, JOURNAL_NAME),
    reread: join(netDir.here, `linkerd-cni.reread${TEMPORARY}`),
    directories: join(dirname(pluginLog), "directories.json"),
  };
}

/** Runtimes do not read files with this extension, and {@link isTemporary} finds those left by a crash. */
export const TEMPORARY = ".linkerd-cni-tmp";

export function isTemporary(name: string): boolean {
  return name.endsWith(TEMPORARY);
}
