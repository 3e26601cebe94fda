import * as fc from "fast-check";
import { createLog } from "../../../process/log";
import { answerReview, parseReview } from "./review";

const MULTUS = "linkerd.io/multus";
const INJECT = "linkerd.io/inject";
const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const UID = "config.linkerd.io/proxy-uid";
const RANGE = "openshift.io/sa.scc.uid-range";

type Annotations = Readonly<Record<string, string>>;
const on = { [MULTUS]: "enabled", [INJECT]: "enabled" };
const component = { "linkerd.io/control-plane-component": "destination" };
const options = { linkerdNamespace: "linkerd", uidRangeAnnotation: RANGE, proxyUidOffset: 2102 };

interface Asked {
  readonly namespace?: string;
  readonly of?: Annotations;
  readonly pod?: Annotations | undefined;
  readonly labels?: Annotations;
  readonly metadata?: object;
  readonly spec?: object;
  readonly request?: object;
}

interface Addition {
  readonly op: string;
  readonly path: string;
  readonly value: unknown;
}

/** Reviews a pod. */
async function ask({ namespace = "shop", of = {}, pod, labels, spec = {}, request, ...more }: Asked) {
  const log: string[] = [];
  const named = { generateName: "cart-", annotations: pod, labels };
  const object = { kind: "Pod", apiVersion: "v1", metadata: "metadata" in more ? more.metadata : named, spec };
  const review = {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: "705ab4f5-6393-11e8-b7cc-42010a800002",
      operation: "CREATE",
      resource: { group: "", version: "v1", resource: "pods" },
      namespace,
      object,
      ...request,
    },
  };
  const tools = {
    namespace: async (name: string) => ({ name, annotations: of }),
    options,
    log: createLog("trace", "plain", (line) => log.push(line)),
  };
  const response = await answerReview(parseReview(JSON.parse(JSON.stringify(review))), tools);
  expect(response).toMatchObject({ uid: review.request.uid, allowed: true });
  const { patch, patchType, warnings = [] } = response;
  expect(patchType).toBe(patch === undefined ? undefined : "JSONPatch");
  const operations = patch === undefined ? [] : (JSON.parse(Buffer.from(patch, "base64").toString()) as Addition[]);
  return { operations, warnings, log, annotations: annotated(pod ?? {}, operations) };
}

/** A pod's annotations with the patch's operations done. */
function annotated(before: Annotations, operations: readonly Addition[]): Annotations {
  let after = { ...before };
  for (const { op, path, value } of operations) {
    expect(op).toBe("add");
    const key = /^\/metadata\/annotations\/([^/]+)$/.exec(path)?.[1]?.replaceAll("~1", "/").replaceAll("~0", "~");
    if (key !== undefined) after[key] = value as string;
    else if (path === "/metadata/annotations") after = value as Record<string, string>;
    else after = (value as { annotations: Record<string, string> }).annotations;
  }
  return after;
}

const proxied = [{ name: "app" }, { name: "linkerd-proxy" }];
const attached = { ...on, [NETWORKS]: "linkerd-cni" };

const table: readonly (readonly [string, Asked, Annotations])[] = [
  // The namespace's annotations.
  ["nothing anywhere", {}, {}],
  ["the namespace enables both", { of: on }, attached],
  ["the namespace enables only Multus", { of: { [MULTUS]: "enabled" } }, { [MULTUS]: "enabled" }],
  ["the namespace enables only injection", { of: { [INJECT]: "enabled" } }, { [INJECT]: "enabled" }],
  ["the namespace says disabled", { of: { ...on, [MULTUS]: "disabled" } }, { ...on, [MULTUS]: "disabled" }],
  ["the namespace's values are empty", { of: { [MULTUS]: "", [INJECT]: "" } }, {}],
  ["the namespace has others too", { of: { ...on, team: "a", "linkerd.io/other": "b" } }, attached],
  ["ingress mode", { of: { ...on, [INJECT]: "ingress" } }, { ...attached, [INJECT]: "ingress" }],
  ["no mode that injects", { of: { ...on, [INJECT]: "Enabled" } }, { ...on, [INJECT]: "Enabled" }],
  // The pod's own come first.
  ["the pod enables both", { pod: on }, attached],
  ["the pod opts out of injection", { of: on, pod: { [INJECT]: "disabled" } }, { ...on, [INJECT]: "disabled" }],
  ["the pod opts out of Multus", { of: on, pod: { [MULTUS]: "disabled" } }, { ...on, [MULTUS]: "disabled" }],
  ["the pod asks for injection", { of: { [MULTUS]: "enabled" }, pod: { [INJECT]: "enabled" } }, attached],
  ["the pod's are empty", { of: on, pod: { [MULTUS]: "", [INJECT]: "" } }, attached],
  ["the pod has others", { of: on, pod: { a: "b" } }, { a: "b", ...attached }],
  // Networks that are there; every form has its own test beside networks.ts.
  [
    "a list of networks",
    { of: on, pod: { [NETWORKS]: "a, ns/b@eth1" } },
    { ...on, [NETWORKS]: "a, ns/b@eth1,linkerd-cni" },
  ],
  [
    "JSON",
    { of: on, pod: { [NETWORKS]: '[{"name":"a"}]' } },
    { ...on, [NETWORKS]: '[{"name":"a"},{"name":"linkerd-cni"}]' },
  ],
  [
    "ours, by its namespace",
    { of: on, pod: { [NETWORKS]: "shop/linkerd-cni" } },
    { ...on, [NETWORKS]: "shop/linkerd-cni" },
  ],
  ["all is there", { of: on, pod: attached }, attached],
  // Linkerd's own namespace.
  ["a control-plane pod", { namespace: "linkerd", labels: component }, { [NETWORKS]: "linkerd-cni" }],
  ["another pod there", { namespace: "linkerd" }, {}],
  ["an empty component", { namespace: "linkerd", labels: { "linkerd.io/control-plane-component": "" } }, {}],
  ["its label elsewhere", { labels: component }, {}],
  ["its label elsewhere, meshed", { labels: component, of: on }, attached],
  // OpenShift.
  ["a range of user ids", { of: { ...on, [RANGE]: "1000680000/10000" } }, { ...attached, [UID]: "1000682102" }],
  ["its other form", { of: { ...on, [RANGE]: "1000680000-1000689999" } }, { ...attached, [UID]: "1000682102" }],
  ["the offset just fits", { of: { ...on, [RANGE]: "5000/2103" } }, { ...attached, [UID]: "7102" }],
  ["the offset is too large by one", { of: { ...on, [RANGE]: "5000/2102" } }, { ...attached, [UID]: "5000" }],
  ["the pod chose a user", { of: { ...on, [RANGE]: "5000/9000" }, pod: { [UID]: "7" } }, { ...attached, [UID]: "7" }],
  ["the namespace chose one", { of: { ...on, [RANGE]: "5000/9000", [UID]: "8" } }, attached],
  [
    "a range, and a proxy is created with the pod",
    { of: { ...on, [RANGE]: "5000/9000" }, spec: { containers: proxied } },
    { ...attached, [UID]: "7102" },
  ],
  [
    "a range, and a proxy is there, on an update",
    { of: { ...on, [RANGE]: "5000/9000" }, spec: { containers: proxied }, request: { operation: "UPDATE" } },
    attached,
  ],
  [
    "a range, and a native sidecar is there, on an update",
    {
      of: { ...on, [RANGE]: "5000/9000" },
      spec: { containers: [{ name: "app" }], initContainers: proxied },
      request: { operation: "UPDATE" },
    },
    attached,
  ],
  [
    "a range, and other containers",
    { of: { ...on, [RANGE]: "5000/9000" }, spec: { containers: [{ name: "app" }], initContainers: null } },
    { ...attached, [UID]: "7102" },
  ],
  ["a range, not meshed", { of: { [RANGE]: "5000/9000" } }, {}],
  [
    "a range, control plane",
    { namespace: "linkerd", labels: component, of: { ...on, [RANGE]: "5000/9000" } },
    attached,
  ],
  [
    "a range, other pod in that namespace",
    { namespace: "linkerd", of: { ...on, [RANGE]: "1/9000" } },
    { ...attached, [UID]: "2103" },
  ],
  // Not read.
  [
    "a pod from a file",
    { of: on, pod: { "kubernetes.io/config.mirror": "x" } },
    { "kubernetes.io/config.mirror": "x" },
  ],
  ["the status", { of: on, request: { operation: "UPDATE", subResource: "status" } }, {}],
  ["an ephemeral container", { of: on, request: { operation: "UPDATE", subResource: "ephemeralcontainers" } }, {}],
  ["a deletion", { of: on, request: { operation: "DELETE", object: null } }, {}],
  [
    "a connection",
    { of: on, request: { operation: "CONNECT", subResource: "exec", object: { kind: "PodExecOptions" } } },
    {},
  ],
  // Updates.
  ["an update before a node has it", { of: on, request: { operation: "UPDATE" } }, attached],
  ["an update of a running pod", { of: on, spec: { nodeName: "node-1" }, request: { operation: "UPDATE" } }, {}],
  [
    "an update that removes ours from a running pod",
    { of: on, pod: on, spec: { nodeName: "node-1" }, request: { operation: "UPDATE", oldObject: {} } },
    on,
  ],
  ["created for a node", { of: on, spec: { nodeName: "node-1" } }, attached],
  // Dry-run decides alike: nothing is done here but to answer.
  ["dry-run", { of: on, request: { dryRun: true } }, attached],
];

test.each(table)("%s", async (_, asked, annotations) => {
  const answer = await ask(asked);
  expect(answer.annotations).toEqual(annotations);
  expect(answer.warnings).toEqual([]);
  // Reviewed again, as the API server does after another webhook: nothing to add.
  const again = await ask({ ...asked, pod: annotations });
  expect(again.operations).toEqual([]);
});

test("the patch adds only what is missing", async () => {
  expect((await ask({ of: on, pod: { [INJECT]: "enabled", [NETWORKS]: "a" } })).operations).toEqual([
    { op: "add", path: "/metadata/annotations/linkerd.io~1multus", value: "enabled" },
    { op: "add", path: "/metadata/annotations/k8s.v1.cni.cncf.io~1networks", value: "a,linkerd-cni" },
  ]);
  expect((await ask({ of: on })).operations).toEqual([{ op: "add", path: "/metadata/annotations", value: attached }]);
  expect((await ask({ of: on, metadata: { annotations: null } })).operations).toEqual([
    { op: "add", path: "/metadata/annotations", value: attached },
  ]);
});

test.each(["", "1000680000", "a/b", "5000/0", "5000-4999", "-1/5", "5000/", "4294967290/10000", "1/1/1"])(
  "the range %j is ignored, with a line in the log unless it is empty",
  async (range) => {
    const { annotations, log } = await ask({ of: { ...on, [RANGE]: range } });
    expect(annotations).toEqual(attached);
    const said = log.filter((line) => line.includes(`${RANGE} on namespace shop: ${JSON.stringify(range)} is not`));
    expect(said).toHaveLength(range === "" ? 0 : 1);
  },
);

test("a user id outside the range is logged", async () => {
  const { log } = await ask({ of: { ...on, [RANGE]: "5000/2102" } });
  expect(log[0]).toContain(`${RANGE} on namespace shop: "5000/2102" does not hold 7102; ${UID} is 5000`);
});

test("networks that cannot be extended do not change, with a warning; the rest is added", async () => {
  const { annotations, warnings, log } = await ask({ of: on, pod: { [NETWORKS]: '{"name":"a"}' } });
  expect(annotations).toEqual({ ...on, [NETWORKS]: '{"name":"a"}' });
  const warning = `${NETWORKS} is neither a list of names nor a JSON array; left as it is, without linkerd-cni`;
  expect(warnings).toEqual([warning]);
  expect(log[0]).toContain(warning);
  expect(log[0]).toContain("namespace=shop pod=cart-");
});

test("networks that only Multus can judge are extended without a warning", async () => {
  const { annotations, warnings } = await ask({ of: on, pod: { [NETWORKS]: "A,b" } });
  expect([annotations[NETWORKS], warnings]).toEqual(["A,b,linkerd-cni", []]);
});

const review = (request: unknown) => ({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
const pods = { uid: "1", operation: "CREATE", resource: { group: "", version: "v1", resource: "pods" } };

test.each([
  [null, "the document is not an object"],
  ["text", "the document is not an object"],
  [{}, "apiVersion is not admission.k8s.io/v1"],
  [{ ...review(pods), apiVersion: "admission.k8s.io/v1beta1" }, "apiVersion is not admission.k8s.io/v1"],
  [{ ...review(pods), kind: "Pod" }, "kind is not AdmissionReview"],
  [review(undefined), "request is not an object"],
  [review({ ...pods, uid: "" }), "request.uid is empty"],
  [review({ ...pods, operation: "create" }), "request.operation is not an operation"],
  [review({ ...pods, resource: undefined }), "request.resource is not an object"],
  [review({ ...pods, resource: { group: "apps", resource: "deployments" } }), "request.resource is deployments.apps"],
  [
    review({ ...pods, resource: { group: "metrics.k8s.io", resource: "pods" } }),
    "request.resource is pods.metrics.k8s.io",
  ],
  [review(pods), "request.object is not an object"],
  // Asked for, it would be the list of all.
  [review({ ...pods, object: { kind: "Pod" } }), "request.namespace is empty"],
  [review({ ...pods, namespace: "", object: { kind: "Pod" } }), "request.namespace is empty"],
  [review({ ...pods, object: { kind: "Service" } }), "request.object.kind is not Pod"],
  [
    review({ ...pods, object: { kind: "Pod", metadata: { annotations: { a: 1 } } } }),
    "request.object.metadata.annotations.a is not a string",
  ],
])("%j is refused: %s", (document, problem) => {
  expect(() => parseReview(document)).toThrow(problem);
});

test("a pod's annotations count as far as Kubernetes allows them, and only those that decide", async () => {
  const annotated = (name: string, length: number) =>
    review({
      ...pods,
      namespace: "shop",
      object: { kind: "Pod", metadata: { annotations: { [name]: "a".repeat(length) } } },
    });
  const most = 256 * 1024;
  expect(parseReview(annotated(NETWORKS, most)).subject?.annotations?.[NETWORKS]).toHaveLength(most);
  expect(() => parseReview(annotated(NETWORKS, most + 1024))).toThrow("are larger than 257 KiB");
  expect(parseReview(annotated("other", 2 * most)).subject?.annotations).toEqual({});
});

test("for any pod and namespace, a second review adds nothing", async () => {
  const value = fc.constantFrom("enabled", "disabled", "ingress", "", "1000680000/10000", "5/2", "[]", "a,b", "A", "7");
  const names = fc.constantFrom(MULTUS, INJECT, NETWORKS, UID, RANGE, "a/b~c");
  const annotations = fc.dictionary(names, value);
  const labels = fc.constantFrom({}, component);
  await fc.assert(
    fc.asyncProperty(annotations, annotations, labels, fc.boolean(), async (of, pod, labels, linkerd) => {
      const asked = { of, pod, labels, namespace: linkerd ? "linkerd" : "shop" };
      const first = await ask(asked);
      for (const [name, value] of Object.entries(pod)) {
        if (value !== "" && name !== NETWORKS) expect(first.annotations[name]).toBe(value);
      }
      expect((await ask({ ...asked, pod: first.annotations })).operations).toEqual([]);
    }),
    { numRuns: 500 },
  );
});
