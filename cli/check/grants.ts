import { Container, InstallerVariable, RepairFlag } from "../../cni/contract";
import type { LinkerdCniProps } from "../../constructs";
import { installed } from "../resources";
import { type DaemonSet, type Grant, installerOf } from "./objects";

const KINDS = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];

/** The values that decide about rights, as far as a DaemonSet tells them. */
function valuesOf(daemonSet: DaemonSet | undefined): LinkerdCniProps {
  const env = installerOf(daemonSet);
  const containers = daemonSet?.spec?.template?.spec?.containers ?? [];
  const repair = containers.find(({ name }) => name === Container.repairController);
  return {
    // More than that may be granted, and need not be.
    rbac: { minimal: true },
    repairController: {
      enabled: repair !== undefined,
      deleteUnvalidated: repair?.args?.includes(`--${RepairFlag.deleteUnvalidated}=true`) === true,
    },
    nodeTaint: { enabled: env.has(InstallerVariable.nodeTaint) },
    podEvents: env.get(InstallerVariable.podEvents) === "true",
    pluginToken: { dedicated: daemonSet === undefined || env.has(InstallerVariable.pluginAccount) },
  };
}

/** The accounts and roles that a DaemonSet needs, as the chart has them; without one, those of the defaults. */
export function requiredGrants(daemonSet: DaemonSet | undefined, namespace: string): readonly Grant[] {
  return installed(valuesOf(daemonSet), namespace).filter(({ kind }) => KINDS.includes(kind)) as readonly Grant[];
}
