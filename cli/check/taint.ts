import { InstallerVariable, STARTUP_TAINT } from "../../cni/contract";
import { docs } from "../links";
import type { Category, Finding } from "./finding";
import type { Rollout } from "./nodes";
import { installerOf, NAME, nodeOf } from "./objects";
import { known } from "./snapshot";

/** Whether the scheduler gives this taint, or unnamed taints, as the reason. */
const waitsForTaint = (message: string, key: string) =>
  message.includes(key) || (message.includes("untolerated taint") && !message.includes("{"));

/** Nodes that keep the startup taint although their pod is ready, or because nothing removes it. */
export function taintFindings(rollout: Rollout, category: Category): readonly Finding[] {
  const { daemonSet, nodes, own, ready, snapshot } = rollout;
  const configured = installerOf(daemonSet).get(InstallerVariable.nodeTaint);
  const key = configured ?? STARTUP_TAINT;
  const waiting = (known(snapshot.pending) ?? []).filter(({ status }) =>
    (status?.conditions ?? []).some(
      ({ type, status, message = "" }) => type === "PodScheduled" && status === "False" && waitsForTaint(message, key),
    ),
  ).length;
  const pods = waiting === 0 ? "" : `, and ${waiting} ${waiting === 1 ? "pod waits" : "pods wait"} for a node`;
  return nodes
    .filter(({ spec }) => (spec?.taints ?? []).some((taint) => taint.key === key))
    .flatMap(({ metadata: { name = "" } }) => {
      const isOccupied = own.some((pod) => nodeOf(pod) === name);
      // Its pod is about to remove it, or is not ready, which another finding reports.
      if (configured !== undefined && isOccupied && !ready.has(name)) return [];
      const take = `kubectl taint node ${name} ${key}-`;
      const [why, remedy] =
        configured === undefined
          ? ["nothing removes it, because nodeTaint.enabled is false", `set nodeTaint.enabled to true, or: ${take}`]
          : isOccupied
            ? [
                "its ready pod has not removed it",
                `see: kubectl logs -n ${snapshot.namespace} -l k8s-app=${NAME} -c install-cni | grep taint; or: ${take}`,
              ]
            : ["it has no pod that removes it", `widen the chart's tolerations or nodeAffinity, or: ${take}`];
      const trouble = {
        problem: `node ${name} has the startup taint ${key}${pods}: ${why}`,
        remedy,
        link: docs("runbooks/startup-taint.md"),
      };
      const what = `node ${name} does not have the startup taint`;
      return [waiting > 0 ? category.bad(what, trouble) : category.odd(what, trouble)];
    });
}
