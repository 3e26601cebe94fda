import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { App, Chart } from "cdk8s";
import { LinkerdCni } from "../../constructs";
import { until } from "../support/controllers";
import { type ApiObject, RealApi, realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { certificateFor } from "../support/webhook";

const REQUIRED = "required-plugins.noderesource.dev";
const NAMESPACE = "shop";

type Annotations = Readonly<Record<string, string>>;

/** A webhook that does to pods what linkerd's injector does: it adds the proxy and its annotation. */
class Injector {
  private constructor(
    private readonly server: Server,
    private readonly ca: string,
  ) {}

  static async start(): Promise<Injector> {
    const { cert, key } = certificateFor("injector");
    const patch = [
      { op: "add", path: "/metadata/annotations/linkerd.io~1proxy-version", value: "edge" },
      { op: "add", path: "/spec/containers/-", value: { name: "linkerd-proxy", image: "none" } },
    ];
    const server = createServer({ cert, key }, async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { uid } = (JSON.parse(Buffer.concat(chunks).toString()) as { request: { uid: string } }).request;
      const answer = { uid, allowed: true, patchType: "JSONPatch", patch: btoa(JSON.stringify(patch)) };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new Injector(server, cert);
  }

  /** As linkerd's chart registers its own, for pods that ask for it. */
  get configuration(): ApiObject & { readonly webhooks: readonly object[] } {
    const { port } = this.server.address() as AddressInfo;
    return {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "MutatingWebhookConfiguration",
      metadata: { name: "injector" },
      webhooks: [
        {
          name: "injector.linkerd.io",
          clientConfig: { url: `https://127.0.0.1:${port}/`, caBundle: btoa(this.ca) },
          rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] }],
          objectSelector: { matchLabels: { inject: "yes" } },
          sideEffects: "None",
          failurePolicy: "Fail",
          admissionReviewVersions: ["v1"],
        },
      ],
    };
  }

  close(): void {
    this.server.close();
  }
}

suite("nri.require.admissionPolicy, with a real API server and a webhook that injects", realApiMissing(), () => {
  let api: RealApi;
  let injector: Injector;

  beforeAll(async () => {
    [api, injector] = [await RealApi.start("nobody"), await Injector.start()];
    const chart = new Chart(new App(), "chart");
    new LinkerdCni(chart, "cni", { nri: { enabled: true, require: { admissionPolicy: "v1beta1" } } });
    const policies = (chart.toJson() as ApiObject[]).filter(({ kind }) => kind.startsWith("MutatingAdmissionPolicy"));
    expect(policies).toHaveLength(2);
    await api.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } }, ...policies);
    await api.create(injector.configuration);
    // Both take a moment to be in force.
    await until("the policy", async () => REQUIRED in (await annotations({ annotations: PROXY })));
    const isInjected = async () => "linkerd.io/proxy-version" in (await annotations(INJECTED));
    await until("the injector", isInjected);
  }, 120_000);

  afterAll(async () => {
    injector?.close();
    await api?.close();
  });

  const PROXY = { "linkerd.io/proxy-version": "edge" };
  const INJECTED = { labels: { inject: "yes" }, annotations: { "linkerd.io/inject": "enabled" } };

  /** The annotations with which a pod comes to be. */
  async function annotations(metadata: object, spec: object = {}): Promise<Annotations> {
    const body = {
      metadata: { generateName: "web-", ...metadata },
      spec: { containers: [{ name: "app", image: "none" }], ...spec },
    };
    const path = `/api/v1/namespaces/${NAMESPACE}/pods?dryRun=All`;
    // The API server calls only webhooks without side effects in a dry run.
    const made = await api.json<{ metadata: { annotations?: Annotations } }>({ method: "POST", path, body });
    return made.metadata.annotations ?? {};
  }

  test("a pod that the webhook injects is annotated, although the policy saw it before", async () => {
    expect(await annotations(INJECTED)).toEqual({
      "linkerd.io/inject": "enabled",
      ...PROXY,
      [REQUIRED]: '["linkerd-cni"]',
    });
  });

  test("a pod that was injected before it was sent is annotated", async () => {
    expect(await annotations({ annotations: PROXY })).toEqual({ ...PROXY, [REQUIRED]: '["linkerd-cni"]' });
  });

  const untouched: readonly (readonly [string, object, object])[] = [
    ["without annotations", {}, {}],
    ["that is not meshed", { annotations: { team: "a" } }, {}],
    ["in the node's network", { annotations: PROXY }, { hostNetwork: true }],
    ["that linkerd-init redirects", { annotations: PROXY }, { initContainers: [{ name: "linkerd-init", image: "i" }] }],
    ["with a list of its own", { annotations: { ...PROXY, [REQUIRED]: '["other"]' } }, {}],
  ];

  test.each(untouched)("a pod %s does not change", async (_, metadata, spec) => {
    const { annotations: given = {} } = metadata as { annotations?: Annotations };
    expect(await annotations(metadata, spec)).toEqual(given);
  });

  test("an update of a pod is not changed", async () => {
    const path = `/api/v1/namespaces/${NAMESPACE}/pods`;
    const body = { metadata: { name: "plain" }, spec: { containers: [{ name: "app", image: "none" }] } };
    await api.json({ method: "POST", path, body });
    const { metadata } = await api.json<{ metadata: { annotations: Annotations } }>({
      method: "PATCH",
      path: `${path}/plain`,
      contentType: "application/merge-patch+json",
      body: { metadata: { annotations: PROXY } },
    });
    expect(metadata.annotations).toEqual(PROXY);
  });
});
