import { InstallerVariable } from "../../cni/contract";
import type { LinkerdCniProps } from "../../constructs";
import { installed } from "../resources";
import { type DaemonSet, type Grant, installerOf, repairOf } from "./objects";

const KINDS = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];

/** The values that decide about permissions, as far as the DaemonSets show them. */
function valuesOf(daemonSet: DaemonSet, nri: DaemonSet | undefined): LinkerdCniProps {
  const env = installerOf(daemonSet);
  return {
    nodeTaint: { enabled: env.has(InstallerVariable.nodeTaint) },
    // More may be granted, but is not needed.
    rbac: { minimal: true },
    repairController: { enabled: repairOf(daemonSet) !== undefined },
    nri: { enabled: nri !== undefined || env.get(InstallerVariable.nriEvents) === "true" },
  };
}

/** The chart's accounts and roles for the DaemonSets. */
export function requiredGrants(daemonSet: DaemonSet, namespace: string, nri?: DaemonSet): readonly Grant[] {
  return installed(valuesOf(daemonSet, nri), namespace).filter(({ kind }) => KINDS.includes(kind)) as readonly Grant[];
}
