import { readFileSync } from "node:fs";
import type { StanzaJson } from "../../cni/conflist/edit";
import { InstallerVariable } from "../../cni/contract";
import { reasonOf } from "../../cni/errors";
import { KUBECONFIG_PLACEHOLDER, PLUGIN_TYPE } from "../../cni/stanza";
import type { Settings } from "../settings";

function parse(text: string, place: string): StanzaJson {
  const value = parseJson(text, place);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error(`${place} is not a JSON object: it holds the plugin's stanza`);
  }
  const stanza = value as StanzaJson;
  if (stanza["type"] !== PLUGIN_TYPE) {
    throw new Error(`${place}: "type" is ${JSON.stringify(stanza["type"])}, and must be "${PLUGIN_TYPE}"`);
  }
  return stanza;
}

function parseJson(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${place} is not valid JSON: ${reasonOf(error)}`);
  }
}

/** Replaces every placeholder by the path. */
function fill(value: unknown, path: string): unknown {
  if (typeof value === "string") return value.replaceAll(KUBECONFIG_PLACEHOLDER, () => path);
  if (Array.isArray(value)) return value.map((item) => fill(item, path));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, path)]));
}

/**
 * The stanza for the node's chain, read each time, because a mounted file changes. The installer sets its own pods
 * itself: kustomize changes neither names nor namespaces in a text. @throws if it is invalid
 */
export function stanzaForNode(settings: Settings, daemonset: string | undefined): StanzaJson {
  const { stanza: source, netDir, kubeconfigName, pod } = settings;
  const stanza =
    "file" in source
      ? parse(readFileSync(source.file, "utf8"), source.file)
      : parse(source.text, InstallerVariable.stanza);
  const ownPods =
    pod === undefined || daemonset === undefined ? {} : { "own-pods": { namespace: pod.namespace, daemonset } };
  return fill({ ...stanza, ...ownPods }, `${netDir.onNode.replace(/\/+$/, "")}/${kubeconfigName}`) as StanzaJson;
}
