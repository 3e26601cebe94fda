import type { StanzaJson } from "../../cni/conflist/edit";
import { InstallerVariable } from "../../cni/contract";
import { reasonOf } from "../../cni/errors";
import { KUBECONFIG_PLACEHOLDER, PLUGIN_TYPE } from "../../cni/stanza";
import { readFileSync } from "../../system/fs";
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

/** Puts the path in for the placeholder, wherever it stands. */
function fill(value: unknown, path: string): unknown {
  if (typeof value === "string") return value.replaceAll(KUBECONFIG_PLACEHOLDER, () => path);
  if (Array.isArray(value)) return value.map((item) => fill(item, path));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, path)]));
}

/**
 * The stanza as it goes into the node's chain. Read again each time: a mounted file changes. Which pods are the
 * installer's own it knows better than a text, in which kustomize changes neither names nor namespace.
 * @throws if it is bad
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
