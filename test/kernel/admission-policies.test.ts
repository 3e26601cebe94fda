import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { App, Chart } from "cdk8s";
import { LinkerdCni, type LinkerdCniProps } from "../../constructs";
import { type ApiObject, RealApi, realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { until } from "../support/until";
import { certificateFor } from "../support/webhook";

const PROXY_UID = "config.linkerd.io/proxy-uid";
const RANGE = "openshift.io/sa.scc.uid-range";
const REQUIRED = "required-plugins.noderesource.dev";
const NAMESPACE = "shop";

type Annotations = Readonly<Record<string, string>>;

/** The objects of the policy that a value asks for. */
function policyOf(props: LinkerdCniProps): readonly ApiObject[] {
  const chart = new Chart(new App(), "chart");
  new LinkerdCni(chart, "cni", props);
  const policies = (chart.toJson() as ApiObject[]).filter(({ kind }) => kind.startsWith("MutatingAdmissionPolicy"));
  expect(policies).toHaveLength(2);
  return policies;
}

/** A webhook that does to pods what linkerd's injector does: it adds the proxy and its annotation. */
class Injector {
  /** The user id that the last pod asked for as it arrived. */
  askedUid: string | undefined;

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
      const { request: asked } = JSON.parse(Buffer.concat(chunks).toString()) as {
        request: { uid: string; object: { metadata: { annotations?: Annotations } } };
      };
      made.askedUid = asked.object.metadata.annotations?.[PROXY_UID];
      const { uid } = asked;
      const answer = { uid, allowed: true, patchType: "JSONPatch", patch: btoa(JSON.stringify(patch)) };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }));
    });
    const made = new Injector(server, cert);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return made;
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
    const policies = policyOf({ nri: { enabled: true, require: { admissionPolicy: "v1beta1" } } });
    await api.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } }, ...policies);
    await api.create(injector.configuration);
    // Both take a moment to be in force.
    await until("the policy", async () => REQUIRED in (await annotations({ annotations: PROXY })));
    const isInjected = async () => "linkerd.io/proxy-version" in (await annotations(INJECTED));
    await until("the injector", isInjected);
  });

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

suite("namespaceUIDRange.admissionPolicy, with a real API server and a webhook that injects", realApiMissing(), () => {
  let api: RealApi;
  let injector: Injector;
  let namespaces = 0;

  /** The user id that a new pod of a new namespace asks the injector for, and has afterwards. */
  async function uidOf(namespace: Annotations, pod: Annotations = {}): Promise<string | undefined> {
    const name = `range-${namespaces++}`;
    await api.create({ apiVersion: "v1", kind: "Namespace", metadata: { name, annotations: namespace } });
    injector.askedUid = undefined;
    const body = {
      metadata: { generateName: "web-", labels: { inject: "yes" }, annotations: pod },
      spec: { containers: [{ name: "app", image: "none" }] },
    };
    const made = await api.json<{ metadata: { annotations?: Annotations } }>({
      method: "POST",
      path: `/api/v1/namespaces/${name}/pods?dryRun=All`,
      body,
    });
    const uid = made.metadata.annotations?.[PROXY_UID];
    expect(injector.askedUid).toBe(uid);
    return uid;
  }

  /** The webhook adds to the annotations that a pod has. */
  const OTHER = { team: "a" };
  const INJECT = { "linkerd.io/inject": "enabled" };

  beforeAll(async () => {
    [api, injector] = [await RealApi.start("nobody"), await Injector.start()];
    await api.create(...policyOf({ namespaceUIDRange: { admissionPolicy: "v1beta1" } }), injector.configuration);
    // Both take a moment to be in force: the policy, and the webhook that sees what it has done.
    await until("the policy", async () => (await uidOf({ ...INJECT, [RANGE]: "5000/5000" }, OTHER)) !== undefined);
  });

  afterAll(async () => {
    injector?.close();
    await api?.close();
  });

  test.each([
    ["1000670000/10000", "1000672102"],
    ["1000-9999", "3102"],
    ["1000/2103", "3102"],
    ["1000/2102", "1000"],
    ["1000/100", "1000"],
    ["1000-1099", "1000"],
    [" 1000/100 ", "1000"],
    ["4294960000-4294967294", "4294962102"],
  ])("range %s gives user id %s", async (range, uid) => {
    expect(await uidOf({ ...INJECT, [RANGE]: range })).toBe(uid);
    expect(await uidOf({ [RANGE]: range }, { "linkerd.io/inject": "ingress" })).toBe(uid);
  });

  test.each(["", "many", "1000", "1000/0", "9-8", "1/99999999999", "1/4294967295", "1000/100,2000/100"])(
    "range %j gives none",
    async (range) => {
      expect(await uidOf({ ...INJECT, [RANGE]: range }, OTHER)).toBeUndefined();
    },
  );

  test("only a pod to be injected that names no user id gets one", async () => {
    const range = { [RANGE]: "1000/100" };
    expect(await uidOf(INJECT, OTHER)).toBeUndefined();
    expect(await uidOf(range, OTHER)).toBeUndefined();
    expect(await uidOf({ ...range, ...INJECT }, { "linkerd.io/inject": "disabled" })).toBeUndefined();
    expect(await uidOf({ ...range, ...INJECT }, { [PROXY_UID]: "7" })).toBe("7");
    expect(await uidOf({ ...range, ...INJECT, [PROXY_UID]: "7" }, OTHER)).toBeUndefined();
  });
});
