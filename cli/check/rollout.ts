import { docs, runbook } from "../links";
import { Category, type Finding, type Trouble } from "./finding";
import { NAME } from "./names";
import type { CheckedPod, DaemonSet, Named } from "./objects";
import { isReady, nodeOf, unreadyContainer, whyNotReady } from "./readiness";
import { unreadable } from "./resources";
import type { Snapshot } from "./snapshot";

const category = new Category("linkerd-cni-nodes");

/** Numbers of a DaemonSet, in words, or undefined where all is as it should be. */
function unfinished({ metadata, spec, status = {} }: DaemonSet): string | undefined {
  const { desiredNumberScheduled = 0, updatedNumberScheduled = 0, numberReady = 0 } = status;
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0)) return "its last change has not been acted on";
  if (desiredNumberScheduled === 0) return "no node is to have a pod";
  if (updatedNumberScheduled < desiredNumberScheduled) {
    const how = spec?.updateStrategy?.type === "OnDelete" ? ", and are replaced when they are deleted" : "";
    return `${desiredNumberScheduled - updatedNumberScheduled} of ${desiredNumberScheduled} pods are of an older version${how}`;
  }
  return numberReady < desiredNumberScheduled
    ? `${numberReady} of ${desiredNumberScheduled} pods are ready`
    : undefined;
}

function rollout(daemonSet: DaemonSet, { namespace }: Snapshot): Finding {
  const {
    desiredNumberScheduled: desired = 0,
    updatedNumberScheduled: updated,
    numberReady: ready,
  } = daemonSet.status ?? {};
  const problem = unfinished(daemonSet);
  const trouble: Trouble | undefined =
    problem === undefined
      ? undefined
      : {
          problem,
          remedy: `wait (--wait 120), then see: kubectl rollout status -n ${namespace} daemonset/${NAME}`,
          link: runbook("LinkerdCNINotReady"),
        };
  const detail = `${desired} desired, ${ready} ready, ${updated} updated`;
  return category.judge(`DaemonSet ${NAME} is rolled out`, trouble, detail);
}

/** A node whose pod is there and not ready. */
function unready(node: string, pod: CheckedPod, { namespace, warnings }: Snapshot): Finding {
  const name = pod.metadata.name ?? "";
  return category.bad(`node ${node} has a ready pod`, {
    problem: `pod ${name} is not ready: ${whyNotReady(pod, warnings.get(name))}`,
    remedy: `see: kubectl logs -n ${namespace} ${name} -c ${unreadyContainer(pod)}`,
    link: runbook("LinkerdCNINotReady"),
  });
}

/** Why there is no pod where there should be one. */
function refusal({ refusals }: Snapshot): string {
  const events = "value" in refusals ? refusals.value : [];
  const last = [...events].sort((a, b) => (a.lastTimestamp ?? "").localeCompare(b.lastTimestamp ?? "")).at(-1);
  return last?.message === undefined ? "it has no pod" : `it has no pod: ${last.message}`;
}

/** A node without any pod: by mistake where fewer pods are there than are wanted, else by the chart's values. */
function without(node: string, isWanted: boolean, snapshot: Snapshot): Finding {
  const what = `node ${node} has a ready pod`;
  if (!isWanted) {
    return category.odd(what, {
      problem: "it is to have none: meshed pods that start there are not redirected",
      remedy: "widen the chart's tolerations or nodeAffinity, or keep meshed pods off the node",
      link: docs("cli.md#nodes"),
    });
  }
  return category.bad(what, {
    problem: refusal(snapshot),
    remedy: `see: kubectl describe daemonset -n ${snapshot.namespace} ${NAME}; its namespace has to allow privileged pods (pod-security.kubernetes.io/enforce)`,
    link: docs("cli.md#nodes"),
  });
}

function selected({ metadata }: Named, daemonSet: DaemonSet): boolean {
  const wanted = Object.entries(daemonSet.spec?.template?.spec?.nodeSelector ?? {});
  return wanted.every(([key, value]) => metadata.labels?.[key] === value);
}

function nodes(daemonSet: DaemonSet, pods: readonly CheckedPod[], snapshot: Snapshot): readonly Finding[] {
  const own = pods.filter(({ metadata }) =>
    (metadata.ownerReferences ?? []).some(({ uid }) => uid === daemonSet.metadata.uid),
  );
  const ready = new Set(own.filter(isReady).map(nodeOf));
  const ailing = new Map(own.filter((pod) => !ready.has(nodeOf(pod))).map((pod) => [nodeOf(pod), pod] as const));
  const known = "value" in snapshot.nodes ? snapshot.nodes.value.filter((node) => selected(node, daemonSet)) : [];
  const bare = known.map(({ metadata }) => metadata.name ?? "").filter((name) => !ready.has(name) && !ailing.has(name));
  const { desiredNumberScheduled = 0 } = daemonSet.status ?? {};
  const isWanted = desiredNumberScheduled > ready.size + ailing.size;
  const found = [
    ...[...ailing].map(([node, pod]) => unready(node, pod, snapshot)),
    ...bare.map((node) => without(node, isWanted, snapshot)),
  ];
  return ready.size > 0
    ? [category.good(ready.size === 1 ? "1 node has a ready pod" : `${ready.size} nodes have a ready pod`), ...found]
    : found;
}

/** Whether the plugin is on every node. */
export function rolloutFindings(snapshot: Snapshot): readonly Finding[] {
  const { daemonSet, pods } = snapshot;
  if ("problem" in daemonSet || daemonSet.value === undefined) return [];
  const unread = [pods, snapshot.nodes].flatMap((what) => ("problem" in what ? [unreadable(what.problem)] : []));
  return [
    rollout(daemonSet.value, snapshot),
    ...unread.map((trouble) => category.bad("every node has a ready pod", trouble)),
    ...("value" in pods ? nodes(daemonSet.value, pods.value, snapshot) : []),
  ];
}
