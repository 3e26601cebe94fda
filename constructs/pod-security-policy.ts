import type { GroupVersionKind } from "cdk8s";
import { REPAIR_PORT } from "../cni/contract";
import { and, or, type Refs, when } from "../helm/index";
import { NRI_CAPABILITIES } from "./nri";
import { INSTALLER_CAPABILITIES, isServed } from "./pod";
import type { Values } from "./props";

/** Beta API that Kubernetes 1.25 removed; `enablePSP` is for older clusters. */
export const PSP: GroupVersionKind = { apiVersion: "policy/v1beta1", kind: "PodSecurityPolicy" };

/** Without it, a policy refuses every pod with a seccomp profile. */
export const PSP_ANNOTATIONS = { "seccomp.security.alpha.kubernetes.io/allowedProfileNames": "runtime/default" };

const only = (port: typeof REPAIR_PORT | Refs<Values>["healthPort"]) => ({ min: port, max: port });

const any = { rule: "RunAsAny" };

/** What both policies allow. */
const common = {
  readOnlyRootFilesystem: true,
  fsGroup: any,
  runAsUser: any,
  seLinux: any,
  supplementalGroups: any,
  volumes: ["hostPath", "secret", "emptyDir", "projected"],
};

/** The PodSecurityPolicy that the pods of the NRI plugin need. */
export const nriPodSecurityPolicy = {
  ...common,
  allowPrivilegeEscalation: false,
  privileged: false,
  allowedCapabilities: NRI_CAPABILITIES,
  hostNetwork: false,
};

/** The PodSecurityPolicy that the installer's pods need. */
export function podSecurityPolicy({ hostNetwork, healthPort, privileged, repairController }: Refs<Values>) {
  return {
    ...common,
    allowPrivilegeEscalation: privileged,
    privileged,
    allowedCapabilities: INSTALLER_CAPABILITIES,
    hostNetwork,
    // On the host network, the containers' ports are the node's.
    hostPorts: when(and(hostNetwork, or(isServed(healthPort), repairController.enabled)), [
      when(isServed(healthPort), only(healthPort)),
      when(repairController.enabled, only(REPAIR_PORT)),
    ]),
  };
}
