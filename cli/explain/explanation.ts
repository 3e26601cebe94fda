import { apiServerPorts, namespaceFromObject, podFromObject } from "../../cni/api-objects";
import { Annotation, LinkerdContainer } from "../../cni/contract";
import { decide } from "../../cni/decide";
import { CniError } from "../../cni/errors";
import { evidenceFromAnnotations, extraLookup, type PassedPod, skipWithoutLookup } from "../../cni/evidence";
import { isObject, type JsonObject } from "../../cni/json";
import { readStanza } from "../../cni/parse-stanza";
import { type Pod, PROXY, type SkipReason } from "../../cni/pod";
import { PLUGIN_TYPE, POD_ANNOTATIONS } from "../../cni/stanza";
import { type Evidence, type Known, nameOf, type PodDecision } from "./evidence";
import type { PodManifest } from "./material";
import { notesOf } from "./notes";
import { type Row, rowsOf } from "./rows";

export interface Explanation {
  readonly pod: string;
  /** The outcome in words; `redirected` only if the pod's validator has confirmed it. */
  readonly verdict: PodDecision["kind"] | "would be redirected";
  readonly outcome: PodDecision;
  /** How it is redirected, with the source of each setting. */
  readonly rows: readonly Row[];
  /** Further notes for the user. */
  readonly notes: readonly string[];
}

function surroundings(pod: Pod, { namespace, apiServer }: Evidence): Known["around"] {
  const needed = extraLookup(pod);
  if (needed === "apiServerPorts") {
    const ports = apiServer === undefined ? undefined : apiServerPorts(apiServer);
    return ports === undefined ? {} : { apiServerPorts: ports };
  }
  if (needed !== "namespace" || namespace === undefined) return {};
  return { namespace: namespaceFromObject(pod.namespace, namespace) };
}

const reasons: Readonly<Record<SkipReason, string>> = {
  "not a pod": "it is not a pod's sandbox",
  "own pod": "it is one of the installer's own, which always start",
  "no proxy": `it has no container ${PROXY}`,
  "linkerd-init sets the rules": "its init container linkerd-init sets the rules",
  simulated: "linkerd.simulate is true: the plugin only says what it would do",
};

const hasProxy = ({ containers, initContainers }: Pod) => [...containers, ...initContainers].includes(PROXY);

function leftAlone(reason: SkipReason, pod: Pod): PodDecision {
  const unmarked = reason === "no proxy" && hasProxy(pod);
  const because = "it has no annotation linkerd.io/proxy-version, which every injector writes";
  return { kind: "left alone", because: unmarked ? because : reasons[reason] };
}

function decided(passed: PassedPod, evidence: Evidence): PodDecision {
  const pod = podFromObject(passed.pod, evidence.pod);
  const { name } = evidence.stanza;
  const { stanza, problem } = readStanza(evidence.stanza, typeof name === "string" ? name : PLUGIN_TYPE);
  const reason = skipWithoutLookup(passed, stanza);
  if (reason !== undefined) return leftAlone(reason, pod);
  if (problem !== undefined) throw problem;
  const policy = stanza["pod-lookup"];
  const annotated = policy === "annotations" ? evidenceFromAnnotations(passed, policy) : undefined;
  const { pod: judged, around } = annotated ?? { pod, around: surroundings(pod, evidence) };
  const decision = decide(judged, around, stanza);
  if (decision.kind === "skip") return leftAlone(decision.reason, pod);
  const because = `it has ${pod.containers.includes(PROXY) ? "a container" : "a native sidecar"} ${PROXY}`;
  return { kind: "redirected", because, options: decision.options, known: { pod: judged, around, stanza } };
}

function outcomeOf(passed: PassedPod, evidence: Evidence): PodDecision {
  try {
    return decided(passed, evidence);
  } catch (error) {
    if (error instanceof CniError) return { kind: "does not start", because: error.message, code: error.code };
    throw error;
  }
}

/** Whether the plugin asks the runtime for the pods' annotations. */
function wantsAnnotations({ capabilities }: JsonObject): boolean {
  const wanted = capabilities as Readonly<Record<string, unknown>> | null | undefined;
  return wanted?.[POD_ANNOTATIONS] === true;
}

/** The annotation by which a pod tells Multus which networks it wants besides the cluster's own. */
const NETWORKS = Annotation.networks;

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

const IN_THE_NODE =
  "it is in the node's own network (hostNetwork), for which container runtimes do not call CNI plugins";
const NOT_ATTACHED = `the plugin is not chained (chained: false), and ${NETWORKS} does not make Multus call it: annotate the pod's namespace with linkerd.io/multus=enabled if chart linkerd-multus is installed, and recreate the pod, or give the pod ${NETWORKS}: ${PLUGIN_TYPE}`;

/** Why the plugin is not called for a pod. */
function uncalled({ pod, chained, nri }: Evidence): string | undefined {
  if (pod.spec?.hostNetwork === true) return IN_THE_NODE;
  return chained || nri || isAttached(pod.metadata?.annotations?.[NETWORKS]) ? undefined : NOT_ATTACHED;
}

/** Whether a pod's validator has found that its connections are redirected. */
const isConfirmed = ({ status }: PodManifest): boolean =>
  (status?.initContainerStatuses ?? []).some(
    ({ name, state }) => name === LinkerdContainer.validator && state?.terminated?.exitCode === 0,
  );

/** Explains what the plugin does for a pod, by the plugin's own functions. */
export function explain(evidence: Evidence): Explanation {
  const { pod: manifest, stanza } = evidence;
  const name = nameOf(manifest);
  const pod = `${name.namespace}/${name.name}`;
  const because = uncalled(evidence);
  if (because !== undefined) {
    return { pod, verdict: "left alone", outcome: { kind: "left alone", because }, rows: [], notes: [] };
  }
  const { annotations = {}, labels = {} } = manifest.metadata ?? {};
  const called = () => outcomeOf({ pod: name, annotations }, evidence);
  // NRI always passes annotations and labels.
  const byNri = () => outcomeOf({ pod: name, annotations, labels }, evidence);
  const isNris = evidence.nri && !evidence.chained;
  const without = isNris ? byNri() : outcomeOf({ pod: name, annotations: undefined }, evidence);
  const outcome = isNris || !wantsAnnotations(stanza) ? without : called();
  const rows = outcome.kind === "redirected" ? rowsOf(outcome, evidence) : [];
  const verdict = outcome.kind === "redirected" && !isConfirmed(manifest) ? "would be redirected" : outcome.kind;
  return { pod, verdict, outcome, rows, notes: notesOf(evidence, outcome, without) };
}
