import { Label } from "../../cni/contract";
import { reasonOf } from "../../cni/errors";
import type { KubernetesClient } from "../../kubernetes/client";
import { resource } from "../../kubernetes/resources";
import type { KubernetesObject } from "../../kubernetes/types";

interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks?: readonly {
    readonly name: string;
    readonly failurePolicy?: string;
    readonly clientConfig: { readonly service?: { readonly namespace: string; readonly name: string } };
  }[];
}

interface EndpointSlice extends KubernetesObject {
  readonly endpoints?: readonly { readonly conditions?: { readonly ready?: boolean } }[];
}

const configurations = resource<WebhookConfiguration>(
  "admissionregistration.k8s.io/v1",
  "MutatingWebhookConfiguration",
  "mutatingwebhookconfigurations",
);
const endpointSlices = resource<EndpointSlice>("discovery.k8s.io/v1", "EndpointSlice", "endpointslices");

/** Linkerd's chart sets this label on the injector's webhook configuration. */
const INJECTOR = `${Label.controlPlaneComponent}=proxy-injector`;
/** The API server answers this from memory. */
const CACHED = { resourceVersion: "0" } as const;

/**
 * Why a new pod might start without a proxy: linkerd's injector does not answer, and its webhook's policy lets the API
 * server create pods without it. Undefined if every new pod gets a proxy. Never rejects.
 */
export async function injectorProblem(client: KubernetesClient): Promise<string | undefined> {
  try {
    const found = await client.list(configurations, { labelSelector: INJECTOR, ...CACHED });
    const webhooks = found.flatMap((configuration) => configuration.webhooks ?? []);
    if (webhooks.length === 0) return `there is no MutatingWebhookConfiguration with label ${INJECTOR}`;
    for (const { name, failurePolicy, clientConfig } of webhooks) {
      if (failurePolicy === "Fail") continue;
      const { service } = clientConfig;
      const slices =
        service === undefined
          ? []
          : await client.list(endpointSlices, {
              namespace: service.namespace,
              labelSelector: `kubernetes.io/service-name=${service.name}`,
              ...CACHED,
            });
      const endpoints = slices.flatMap((slice) => slice.endpoints ?? []);
      // Kubernetes reads an absent condition as ready.
      if (!endpoints.some(({ conditions }) => conditions?.ready !== false))
        return `the webhook ${name} has no ready endpoint and failurePolicy ${failurePolicy}`;
    }
    return undefined;
  } catch (error) {
    return reasonOf(error);
  }
}
