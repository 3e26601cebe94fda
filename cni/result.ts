import { isObject, type JsonObject, refuse } from "./json";
import type { NetworkConfig } from "./network-config";
import type { CniVersion } from "./versions";

/** The previous plugin's result from the runtime; undefined if absent. @throws CniError 7 if it is not an object */
export function previousResult(source: JsonObject): JsonObject | undefined {
  const previous = source["prevResult"];
  if (previous === undefined || previous === null) return undefined;
  return isObject(previous) ? previous : refuse("prevResult", previous, "an object");
}

/**
 * The result of an ADD: the previous plugin's in the configuration's version. It is valid, since libcni decodes each
 * plugin's result before it passes it on. Without a previous result (called alone) it is empty.
 */
export function resultText({ source }: NetworkConfig, version: CniVersion): string {
  return JSON.stringify({ ...previousResult(source), cniVersion: version });
}
