import { isObject, type Json, type JsonObject } from "../../../cni/json";
import { parseStanza } from "../../../cni/parse-stanza";
import { PLUGIN_TYPE } from "../../../cni/stanza";
import { requireSupported } from "../../../cni/versions";
import type { ObjectMeta } from "../../../kubernetes/types";

/** What the definitions hold, read from the ConfigMap that the plugin's chart writes. */

export const CONFIG_MAP = "linkerd-cni-config";
const KEY = "cni_network_config";

/** Every Multus of today speaks it. */
const CNI_VERSION = "1.0.0";

export interface ConfigMapObject {
  readonly metadata?: ObjectMeta;
  readonly data?: Readonly<Record<string, string>>;
}

/** `spec.config` of the definitions, or why there is none. */
export type Config =
  | { readonly kind: "valid"; readonly text: string }
  | { readonly kind: "invalid"; readonly problem: string };

/** @throws an Error that says what is wrong with the text */
function parse(text: string): JsonObject {
  let json: Json;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new Error(`not JSON: ${(error as Error).message}`);
  }
  if (!isObject(json)) throw new Error("not a JSON object");
  return json;
}

/** The stanza as a configuration that stands alone; every field is kept. @throws where the plugin would refuse it */
function standAlone(stanza: JsonObject, kubeconfig: string): JsonObject {
  const { kubernetes = {}, cniVersion = CNI_VERSION } = stanza;
  parseStanza(stanza, PLUGIN_TYPE);
  requireSupported(typeof cniVersion === "string" ? cniVersion : "", "cniVersion");
  return {
    ...stanza,
    cniVersion,
    name: PLUGIN_TYPE,
    type: PLUGIN_TYPE,
    kubernetes: { ...(kubernetes as JsonObject), kubeconfig },
  };
}

/** Reads the ConfigMap; `where` names it in messages, `kubeconfig` is the path on the nodes. */
export function readConfig(configMap: ConfigMapObject | undefined, where: string, kubeconfig: string): Config {
  const text = configMap?.data?.[KEY];
  if (configMap === undefined) return { kind: "invalid", problem: `ConfigMap ${where} does not exist` };
  if (text === undefined) return { kind: "invalid", problem: `ConfigMap ${where} has no key ${KEY}` };
  try {
    return { kind: "valid", text: JSON.stringify(standAlone(parse(text), kubeconfig), undefined, 2) };
  } catch (error) {
    return { kind: "invalid", problem: `ConfigMap ${where}, key ${KEY}: ${(error as Error).message}` };
  }
}
