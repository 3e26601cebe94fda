import type { ConfigMap } from "kubernetes-types/core/v1";
import { ConfigMapKey } from "../cni/contract";
import { reasonOf } from "../cni/errors";
import { isObject, type JsonObject } from "../cni/json";
import type { Sent } from "./check/objects";
import { installed } from "./resources";

/** The key of the ConfigMap that holds the plugin's configuration. */
const KEY = ConfigMapKey.stanza;

export type ConfigMapObject = Sent<ConfigMap>;

/** NAMESPACE/NAME; only the name if a file does not name a namespace. */
export const pathOf = (metadata: ConfigMapObject["metadata"]): string =>
  [metadata?.namespace, metadata?.name].filter((part) => part !== undefined).join("/");

/** The stanza in a ConfigMap. @throws if it has none */
export function stanzaSource({ metadata, data }: ConfigMapObject): JsonObject {
  const where = `ConfigMap ${pathOf(metadata)}`;
  const text = data?.[KEY];
  if (text === undefined) throw new Error(`${where}: has no key ${KEY}, which holds the plugin's configuration`);
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch (error) {
    throw new Error(`${where}: ${KEY} is not JSON: ${reasonOf(error)}`);
  }
  if (isObject(read)) return read;
  throw new Error(`${where}: ${KEY} is not a JSON object`);
}

/** The stanza of the chart's default values. */
export function defaultStanza(namespace: string): JsonObject {
  const map = installed({}, namespace).find(({ kind }) => kind === "ConfigMap");
  return stanzaSource(map as ConfigMapObject);
}
