import { InstallerVariable, NRI_NAME } from "../../cni/contract";
import { docs, runbook } from "../links";
import { ifUnreadable } from "./access";
import { Category, type Finding, type Trouble } from "./finding";
import { Rollout } from "./nodes";
import { installerOf, isChained } from "./objects";
import { known, type Snapshot } from "./snapshot";

const category = new Category(NRI_NAME);

function troubles(rollout: Rollout): readonly Trouble[] {
  const unready = rollout
    .unready()
    .map(([node, trouble]) => ({ ...trouble, problem: `node ${node}: ${trouble.problem}` }));
  const found = [rollout.refusal() ?? [], unready].flat();
  return found.length > 0 ? found : [rollout.unfinished() ?? []].flat();
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
  const found = troubles(new Rollout(nri.value, snapshot, runbook("LinkerdCNINriNotConnected")));
  const { desiredNumberScheduled: desired = 0, numberReady: ready = 0 } = nri.value.status ?? {};
  const mode = chained
    ? category.good("pods are redirected by the chain, and by the NRI plugin where it did not")
    : category.good("pods are redirected by the NRI plugin, without a chain (chained: false)");
  if (found.length === 0) return [category.good(what, `${desired} desired, ${ready} ready`), mode];
  const judge = (trouble: Trouble) => (chained ? category.odd(what, trouble) : category.bad(what, trouble));
  return found.map(judge);
}
