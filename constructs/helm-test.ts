import type { k8s } from "cdk8s-plus-27";
import { Annotation, CNI_NAME, ConfigMapKey, InstallerVariable, LinkerdContainer, PodVariable } from "../cni/contract";
import { eq, type Input, present, type Refs, type Templated, when } from "../helm/index";
import { configured, fromField, imageOf, programCommand, resourcesOf } from "./container";
import { nodesOf } from "./pod";
import type { Values } from "./values";

/**
 * Annotations of a resource that only `helm test` creates. The resource stays until the next test: otherwise `helm test
 * --logs` fails.
 */
export const TEST_HOOK = { "helm.sh/hook": "test", "helm.sh/hook-delete-policy": "before-hook-creation" } as const;

/** Makes the plugin treat the test's pod as meshed, and keeps Linkerd's injector from injecting it. */
export const MESHED = { [Annotation.proxyVersion]: "helm-test", [Annotation.inject]: "disabled" } as const;

/** A user or group other than the proxy's, whose connections are not redirected. */
const otherThan = (id: Input<number>) => when(eq<number>(id, 65532), 65533, 65532);

/** The pod that tests whether the plugin redirects it. It needs no permissions and no capabilities. */
export function testPodSpec(
  values: Refs<Values>,
  securityContext: Templated<k8s.PodSecurityContext>,
): Templated<k8s.PodSpec> {
  return {
    restartPolicy: "Never",
    // Only for its image pull secrets and the platform's security policies.
    serviceAccountName: CNI_NAME,
    automountServiceAccountToken: false,
    ...nodesOf(values),
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
