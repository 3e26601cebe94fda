import { Annotation, INJECT_MODES, Label, LinkerdContainer } from "../../cni/contract";
import { docs } from "../links";
import { isUnchained, NOT_REDIRECTED, sandboxTrouble, severalText } from "./causes";
import { Category, type Finding, type Trouble } from "./finding";
import {
  type CheckedPod,
  type DaemonSet,
  isNri,
  isReady,
  type Named,
  nodeOf,
  OWN_PODS,
  pathOf,
  repairOf,
  SELECTOR,
} from "./objects";
import { known, type Snapshot } from "./snapshot";

const category = new Category("linkerd-cni-pods");

/** Pods that the plugin keeps from starting, one finding for each of its messages. */
function unstarted(pods: readonly CheckedPod[], daemonSet: DaemonSet, snapshot: Snapshot): readonly Finding[] {
  const byText = new Map<string, { readonly trouble: Trouble; readonly pods: CheckedPod[] }>();
  for (const pod of pods) {
    const trouble = sandboxTrouble({ pod, daemonSet, snapshot });
    if (trouble === undefined) continue;
    const group = byText.get(trouble.remedy) ?? { trouble, pods: [] };
    group.pods.push(pod);
    byText.set(trouble.remedy, group);
  }
  return [...byText.values()].map(({ trouble, pods: held }) =>
    category.bad("pods start with the plugin in their chain", {
      ...trouble,
      problem: `${severalText(held)} cannot start: ${trouble.problem}`,
      remedy: trouble.remedy.replace("NAMESPACE/POD", pathOf(held[0] as CheckedPod)),
    }),
  );
}

/** Pods whose redirect their node's NRI plugin sets: the next run of their validator passes. */
function mended(pods: readonly CheckedPod[]): readonly Finding[] {
  const [first] = pods;
  if (first === undefined) return [];
  return [
    category.odd("validators of meshed pods pass", {
      problem: `${severalText(pods)} started without rules, which the NRI plugin sets in place: linkerd-network-validator has yet to run again`,
      remedy: `wait: the kubelet runs it again within five minutes. If it fails again: l5d-cni explain ${pathOf(first)}`,
      link: docs("nri.md"),
    }),
  ];
}

/** Pods whose validator found that they are not redirected: they started before the chain was complete. */
function unchained(all: readonly CheckedPod[], daemonSet: DaemonSet): readonly Finding[] {
  const [first] = all;
  if (first === undefined) return [];
  const { namespace, name } = first.metadata;
  const each = all.length === 1 ? "it" : "them";
  const del = `delete ${each}: kubectl delete pod -n ${namespace} ${name}`;
  const remedy =
    repairOf(daemonSet) === undefined
      ? `${del}; or switch repairController.enabled on`
      : `the repair controller deletes ${each} in turn; if it does not, see its Events (kubectl events -n ${namespace} --for pod/${name}), and ${del}`;
  return [
    category.bad("meshed pods started after the chain was complete", {
      problem: `${severalText(all)} started before the chain: linkerd-network-validator ended with code ${NOT_REDIRECTED}`,
      remedy: `${remedy}. If it fails again: l5d-cni explain ${pathOf(first)}`,
      link: docs("operate.md#repair-controller"),
    }),
  ];
}

const namesOf = ({ spec = {} }: CheckedPod) =>
  [...(spec.containers ?? []), ...(spec.initContainers ?? [])].map(({ name }) => name);

/** Meshed pods that are older than the installation, and have nothing that shows whether they are redirected. */
function unproven(running: readonly CheckedPod[], { metadata }: DaemonSet): readonly Finding[] {
  const since = metadata.creationTimestamp;
  const old = running.filter((pod) => {
    const names = namesOf(pod);
    const start = pod.status?.startTime ?? pod.metadata.creationTimestamp;
    const isOlder = since !== undefined && start !== undefined && Date.parse(start) < Date.parse(since);
    const shows = [LinkerdContainer.validator, LinkerdContainer.init].some((name) => names.includes(name));
    return isOlder && names.includes(LinkerdContainer.proxy) && !shows && pod.spec?.hostNetwork !== true;
  });
  if (old.length === 0) return [];
  return [
    category.odd("meshed pods are younger than the installation", {
      problem: `${severalText(old)} started before the installation (${since}) and without linkerd-network-validator: nothing shows whether they are redirected`,
      remedy: "replace them: kubectl rollout restart, or delete them",
      link: docs("operate.md#repair-controller"),
    }),
  ];
}

/** Pods without a proxy although they or their namespace ask for injection, and the injector would inject them. */
function uninjected(running: readonly CheckedPod[], namespaces: readonly Named[]): readonly Finding[] {
  const asking = new Map(
    namespaces
      .filter(({ metadata }) => metadata.labels?.[Label.admissionWebhooks] !== "disabled")
      .map(({ metadata }) => [metadata.name, metadata.annotations?.[Annotation.inject] ?? ""]),
  );
  const without = running.filter((pod) => {
    const { metadata, spec = {} } = pod;
    const answer = asking.get(metadata.namespace);
    const asks = INJECT_MODES.includes(metadata.annotations?.[Annotation.inject] ?? answer ?? "");
    const isPossible = spec.hostNetwork !== true && spec.automountServiceAccountToken !== false;
    return answer !== undefined && asks && isPossible && !namesOf(pod).includes(LinkerdContainer.proxy);
  });
  const [first] = without;
  if (first === undefined) return [];
  return [
    category.odd("pods that ask for injection have a proxy", {
      problem: `${severalText(without)} ${without.length === 1 ? "has" : "have"} no proxy, although ${Annotation.inject} of the pod or its namespace asks for one: created while linkerd's injector did not answer, or before the annotation`,
      remedy: `check that the injector is ready (linkerd check), and replace the pods: kubectl delete pod -n ${first.metadata.namespace} ${first.metadata.name}`,
      link: docs("operate.md#repair-controller"),
    }),
  ];
}

/** Whether meshed pods of all namespaces start, and are chained. */
export function podFindings(snapshot: Snapshot): readonly Finding[] {
  const daemonSet = known(snapshot.daemonSet);
  const pending = known(snapshot.pending);
  if (daemonSet === undefined || pending === undefined) return [];
  const running = known(snapshot.running) ?? [];
  // The installer's pods are checked with their nodes.
  const others = pending.filter(({ metadata }) => !OWN_PODS.includes(metadata.labels?.[SELECTOR.key] ?? ""));
  const nri = new Set((known(snapshot.pods) ?? []).filter((pod) => isNri(pod) && isReady(pod)).map(nodeOf));
  const broken = others.filter(isUnchained);
  const found = [
    ...unstarted(others, daemonSet, snapshot),
    ...unchained(
      broken.filter((pod) => !nri.has(nodeOf(pod))),
      daemonSet,
    ),
    ...mended(broken.filter((pod) => nri.has(nodeOf(pod)))),
    ...unproven(
      running.filter((pod) => !nri.has(nodeOf(pod))),
      daemonSet,
    ),
    ...uninjected(running, known(snapshot.namespaces) ?? []),
  ];
  return found.length > 0 ? found : [category.good("no pod waits for the plugin")];
}
