import { join } from "node:path";
import { PLUGIN_TYPE } from "../../cni/stanza";
import type { Settings } from "../settings";
import { JOURNAL_NAME } from "./journal";
import type { View } from "./node-path";
import { type PluginLayout, pluginLayout } from "./plugin-layout";

/** Where things lie, as seen from here. */
export interface Places extends View {
  readonly netDir: string;
  readonly binDir: string;
  /** The file that runtimes call. */
  readonly plugin: string;
  /** What stands for the plugin on the node, besides or behind that file. */
  readonly layout: PluginLayout;
  readonly kubeconfig: string;
  readonly journal: string;
}

/** @throws where the image is incomplete */
export function placesOf(settings: Settings): Places {
  const { netDir, binDir, kubeconfigName, mountPrefix } = settings;
  return {
    mountPrefix,
    mounted: [netDir.here, binDir.here],
    netDir: netDir.here,
    binDir: binDir.here,
    plugin: join(binDir.here, PLUGIN_TYPE),
    layout: pluginLayout(settings),
    kubeconfig: join(netDir.here, kubeconfigName),
    journal: join(netDir.here, JOURNAL_NAME),
  };
}
