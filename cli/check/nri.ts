import { InstallerVariable, NRI_NAME } from "../../cni/contract";
import { docs, runbook } from "../links";
import { ifUnreadable } from "./access";
import { causeOf, refusalOf, unknownCause } from "./causes";
import { Category, type Finding, type Trouble } from "./finding";
import { type CheckedPod, type DaemonSet, installerOf, isChained, isReady, nodeOf } from "./objects";
import { known, type Snapshot } from "./snapshot";

const category = new Category(NRI_NAME);
const link = runbook("LinkerdCNINriNotConnected");

/** Pods of the NRI plugin that are not ready, except those beside a ready one, which may only need time. */
function unready(pods: readonly CheckedPod[], daemonSet: DaemonSet, snapshot: Snapshot): readonly Trouble[] {
  const ready = new Set(pods.filter(isReady).map(nodeOf));
  return pods
    .filter((pod) => !isReady(pod))
    .flatMap((pod) => {
      const situation = { pod, daemonSet, snapshot };
      const cause = causeOf(situation);
      if (cause === undefined && ready.has(nodeOf(pod))) return [];
      const { problem, ...rest } = cause ?? unknownCause(situation);
      return [{ problem: `node ${nodeOf(pod)}: pod ${pod.metadata.name} is not ready: ${problem}`, ...rest }];
    });
}

/** The DaemonSet's numbers in words, if pods are missing. */
function unfinished({ metadata, status = {} }: DaemonSet, namespace: string): Trouble | undefined {
  const { desiredNumberScheduled: desired = 0, numberReady = 0, observedGeneration = 0 } = status;
  const isActedOn = observedGeneration >= (metadata.generation ?? 0);
  if (isActedOn && numberReady >= desired) return undefined;
  const problem = isActedOn
    ? `${numberReady} of ${desired} pods are ready`
    : "its DaemonSet's controller has not processed the last change";
  const remedy = `wait (--wait 120), then see: kubectl rollout status -n ${namespace} daemonset/${NRI_NAME}`;
  return { problem, remedy, link };
}

function troubles(daemonSet: DaemonSet, snapshot: Snapshot): readonly Trouble[] {
  const all = known(snapshot.pods) ?? [];
  const own = all.filter(({ metadata }) =>
    (metadata.ownerReferences ?? []).some(({ uid }) => uid === daemonSet.metadata.uid),
  );
  const { desiredNumberScheduled: desired = 0 } = daemonSet.status ?? {};
  const refusal =
    own.length < desired ? refusalOf(daemonSet, { ...snapshot, refusals: snapshot.nriRefusals }) : undefined;
  const found = [...(refusal === undefined ? [] : [refusal]), ...unready(own, daemonSet, snapshot)];
  const rest = found.length > 0 ? undefined : unfinished(daemonSet, snapshot.namespace);
  return rest === undefined ? found : [rest];
}

/** Whether the NRI plugin is on every node, if enabled: without a chain nothing else redirects. */
export function nriFindings(snapshot: Snapshot): readonly Finding[] {
  const { nri, daemonSet, namespace } = snapshot;
  const what = `DaemonSet ${NRI_NAME} is ready`;
  if ("problem" in nri) return ifUnreadable(category, what, nri);
  const installer = known(daemonSet);
  if (nri.value === undefined) {
    if (installerOf(installer).get(InstallerVariable.nriEvents) !== "true") return [];
    const problem = `DaemonSet ${namespace}/${NRI_NAME} is not there, and the installer expects it (nri.enabled)`;
    const remedy = "apply the chart again, with the values it was installed with";
    return [category.bad(what, { problem, remedy, link: docs("nri.md") })];
  }
  const chained = isChained(installer);
  const found = troubles(nri.value, snapshot);
  const { desiredNumberScheduled: desired = 0, numberReady: ready = 0 } = nri.value.status ?? {};
  const mode = chained
    ? category.good("pods are redirected by the chain, and by the NRI plugin where it did not")
    : category.good("pods are redirected by the NRI plugin, without a chain (chained: false)");
  if (found.length === 0) return [category.good(what, `${desired} desired, ${ready} ready`), mode];
  const judge = (trouble: Trouble) => (chained ? category.odd(what, trouble) : category.bad(what, trouble));
  return found.map(judge);
}
