import type { k8s } from "cdk8s-plus-27";
import { Annotation, ConfigMapKey, InstallerVariable, Label, LinkerdContainer, PodVariable } from "../cni/contract";
import { eq, type Input, present, type Refs, type Templated, when } from "../helm/index";
import { fromField, imageOf, programCommand, resourcesOf } from "./container";
import { configured } from "./pod";
import type { Values } from "./props";

/**
 * What makes a resource of a chart one that only `helm test` creates. It stays until the next test: without it
 * `helm test --logs` fails.
 */
export const TEST_HOOK = { "helm.sh/hook": "test", "helm.sh/hook-delete-policy": "before-hook-creation" } as const;

/** What makes the plugin take the test's pod for a meshed one, and keeps Linkerd's injector from meshing it. */
export const MESHED = { [Annotation.proxyVersion]: "helm-test", [Annotation.inject]: "disabled" } as const;

/** A user or a group that is not the proxy's: what the proxy's own ones connect to is not redirected. */
const otherThan = (id: Input<number>) => when(eq<number>(id, 65532), 65533, 65532);

/** The pod that finds out whether the plugin redirects it. It needs no right in the cluster, and no capability. */
export function testPodSpec(
  values: Refs<Values>,
  serviceAccountName: string,
  securityContext: Templated<k8s.PodSecurityContext>,
): Templated<k8s.PodSpec> {
  return {
    restartPolicy: "Never",
    // Only for its image pull secrets, and what it may use of the platform.
    serviceAccountName,
    automountServiceAccountToken: false,
    nodeSelector: { [Label.os]: "linux" },
    // The nodes that have the plugin.
    affinity: when(values.nodeAffinity, { nodeAffinity: values.nodeAffinity }),
    tolerations: present(values.helmTest.tolerations) as Templated<k8s.PodSpec["tolerations"]>,
    securityContext,
    containers: [
      {
        name: LinkerdContainer.proxy,
        ...imageOf(values),
        command: programCommand("validate"),
        env: [
          configured(InstallerVariable.stanza, ConfigMapKey.stanza),
          fromField(PodVariable.nodeName, "spec.nodeName"),
          fromField(PodVariable.podNamespace, "metadata.namespace"),
          fromField(PodVariable.podIps, "status.podIPs"),
        ],
        resources: resourcesOf(values.resources),
        securityContext: {
          allowPrivilegeEscalation: false,
          capabilities: { drop: ["ALL"] },
          readOnlyRootFilesystem: true,
          runAsNonRoot: true,
          runAsUser: otherThan(values.proxyUID),
          runAsGroup: otherThan(values.proxyGID),
        },
      },
    ],
  };
}
