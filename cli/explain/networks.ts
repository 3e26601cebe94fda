import { Annotation } from "../../cni/contract";
import { isObject } from "../../cni/json";
import { PLUGIN_TYPE } from "../../cni/stanza";

/** The annotation by which a pod tells Multus which networks it wants besides the cluster's own. */
export const NETWORKS = Annotation.networks;

/** Names of the definitions: `[NAMESPACE/]NAME[@INTERFACE]`, comma-separated, or a JSON list. */
function namesIn(text: string): readonly unknown[] {
  if (!text.trim().startsWith("[")) return text.split(",").map((item) => /([^/@]+)(?:@.*)?$/.exec(item.trim())?.[1]);
  try {
    const read: unknown = JSON.parse(text);
    return Array.isArray(read) ? read.map((item) => (isObject(item) ? item["name"] : undefined)) : [];
  } catch {
    return [];
  }
}

/** Whether Multus calls the plugin for a pod with this annotation. */
export const isAttached = (networks: string | undefined): boolean => namesIn(networks ?? "").includes(PLUGIN_TYPE);
