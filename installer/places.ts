import { join } from "node:path";
import { PLUGIN_TYPE } from "../cni/stanza";
import { JOURNAL_NAME } from "./journal";
import type { Settings } from "./settings";

/** Where things lie, as seen from here. */
export interface Places {
  readonly netDir: string;
  readonly binDir: string;
  /** The plugin in this image. */
  readonly pluginSource: string;
  /** The plugin on the node. */
  readonly plugin: string;
  readonly kubeconfig: string;
  readonly journal: string;
}

export function placesOf({ netDir, binDir, pluginDir, kubeconfigName }: Settings): Places {
  return {
    netDir: netDir.here,
    binDir: binDir.here,
    pluginSource: join(pluginDir, PLUGIN_TYPE),
    plugin: join(binDir.here, PLUGIN_TYPE),
    kubeconfig: join(netDir.here, kubeconfigName),
    journal: join(netDir.here, JOURNAL_NAME),
  };
}
