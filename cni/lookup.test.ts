import fc from "fast-check";
import { reducedObject } from "./api-objects";
import { decide, SETTINGS } from "./decide";
import { skipWithoutLookup } from "./evidence";
import { type Get, gatherEvidence, isLookup } from "./lookup";
import { readStanza } from "./parse-stanza";
import { POD_LOOKUPS, type PodLookup } from "./stanza";

const injected = { "linkerd.io/created-by": "linkerd/proxy-injector edge", "linkerd.io/proxy-version": "edge" };
const manual = { "linkerd.io/created-by": "linkerd/cli edge", "linkerd.io/proxy-version": "edge" };
const containers = [{ name: "app" }, { name: "linkerd-proxy" }];

type Api = Get;
const ok = (object: object): ReturnType<Get> => ({ status: 200, body: JSON.stringify(object) });
const unreachable: Api = () => {
  throw new Error("API server 10.0.0.1:443: no answer within 5000 ms");
};
const status =
  (code: number): Api =>
  () => ({ status: code, body: "{}" });
const podIs =
  (metadata: object, spec: object = { containers }): Api =>
  (path) => {
    if (path.includes("/pods/")) return ok({ kind: "Pod", metadata: { name: "cart-1", ...metadata }, spec });
    if (path.endsWith("/services/kubernetes"))
      return ok({
        kind: "Service",
        metadata: { name: "kubernetes", namespace: "default" },
        spec: {
          ports: [
            { port: 443, targetPort: 8443 },
            { port: 9, targetPort: "name" },
          ],
        },
      });
    return ok({ kind: "Namespace", metadata: { name: "shop", annotations: { from: "namespace" } } });
  };

function gather(annotations: Record<string, string> | undefined, policy: PodLookup, api: Api, uid?: string) {
  const requests: string[] = [];
  const passed = { pod: { namespace: "shop", name: "cart-1", ...(uid === undefined ? {} : { uid }) }, annotations };
  const get = (path: string) => {
    requests.push(path);
    return api(path, true);
  };
  const outcome = () => {
    const skip = skipWithoutLookup(passed, { "pod-lookup": policy });
    if (skip !== undefined) return { skip };
    try {
      return gatherEvidence(passed, policy, get);
    } catch (error) {
      return { error: (error as Error).message };
    }
  };
  return { ...outcome(), requests: requests.length } as {
    skip?: string;
    evidence?: object;
    unanswered?: string;
    error?: string;
    requests: number;
  };
}

describe("if the runtime passes annotations", () => {
  it.each(["auto", "annotations"] as const)("a pod without a proxy needs no request (pod-lookup %s)", (policy) => {
    expect(gather({ a: "b" }, policy, unreachable)).toEqual({ skip: "no proxy", requests: 0 });
  });

  it("an injected pod needs one request", () => {
    const { evidence, requests } = gather(injected, "auto", podIs({ annotations: injected }));
    expect(evidence).toMatchObject({ around: {}, pod: { containers: ["app", "linkerd-proxy"] } });
    expect(requests).toBe(1);
  });

  it("a meshed pod without injection needs two, for its namespace", () => {
    const { evidence, requests } = gather(manual, "auto", podIs({ annotations: manual }));
    expect(evidence).toMatchObject({ around: { namespace: { name: "shop", annotations: { from: "namespace" } } } });
    expect(requests).toBe(2);
  });

  it("a control-plane pod needs two, for the API server's ports", () => {
    const labels = { "linkerd.io/control-plane-component": "identity" };
    const { evidence, requests } = gather(manual, "auto", podIs({ annotations: manual, labels }));
    expect(evidence).toMatchObject({ around: { apiServerPorts: [443, 8443, 9] } });
    expect(requests).toBe(2);
  });

  it("a pod with linkerd-init needs one, injected or not", () => {
    const spec = { containers, initContainers: [{ name: "linkerd-init" }] };
    expect(gather(manual, "auto", podIs({ annotations: manual }, spec)).requests).toBe(1);
  });

  it.each([
    ["does not answer", unreachable],
    ["refuses the token", status(401)],
    ["fails", status(500)],
  ])("they decide about an injected pod if the API server %s", (_, api) => {
    const { evidence, unanswered } = gather(injected, "auto", api);
    expect(evidence).toMatchObject({ pod: { annotations: injected } });
    expect(unanswered).toContain("API server");
  });

  it("but not about one without injection, whose namespace may have settings", () => {
    expect(gather(manual, "auto", unreachable).error).toMatch(
      /cannot look up pod shop\/cart-1: .*no answer within 5000 ms/,
    );
  });

  it("they alone decide if so configured", () => {
    const { evidence, requests } = gather(injected, "annotations", unreachable);
    expect(evidence).toMatchObject({ pod: { containers: ["linkerd-proxy"] } });
    expect(requests).toBe(0);
  });

  it.each([
    ["the control plane's", { "linkerd.io/control-plane-component": "identity" }],
    ["made by hand", {}],
  ])("a meshed pod without injection is still looked up: %s", (_, labels) => {
    const api = podIs({ annotations: manual, labels });
    expect(gather(manual, "annotations", api)).toEqual(gather(manual, "auto", api));
    expect(gather(manual, "annotations", unreachable).error).toMatch(/no answer within 5000 ms/);
  });

  it("they do not count if the API server must be asked", () => {
    expect(gather({}, "api", podIs({ annotations: injected })).requests).toBe(1);
    expect(gather(injected, "api", unreachable).error).toMatch(/no answer/);
  });
});

describe("if it does not", () => {
  it.each(POD_LOOKUPS)("the API server decides (pod-lookup %s)", (policy) => {
    expect(gather(undefined, policy, podIs({}, { containers: [{ name: "app" }] })).requests).toBe(1);
    expect(gather(undefined, policy, unreachable).error).toMatch(/cannot look up pod shop\/cart-1/);
  });

  it("an answer that is not the pod is an error", () => {
    expect(gather(undefined, "auto", status(404)).error).toMatch(/answered 404 when asked for pod shop\/cart-1/);
    expect(gather(undefined, "auto", status(401)).error).toMatch(/answered 401 when asked for pod shop\/cart-1/);
    expect(gather(undefined, "auto", () => ({ status: 200, body: "<" })).error).toMatch(/answer for pod/);
  });
});

describe("if another pod has taken the name", () => {
  const other = podIs({ uid: "new", annotations: { ...injected, "config.linkerd.io/proxy-uid": "7" } });

  it("an injected pod's annotations decide", () => {
    const { evidence, unanswered } = gather(injected, "auto", other, "old");
    expect(evidence).toMatchObject({ pod: { annotations: injected } });
    expect(evidence).not.toMatchObject({ pod: { annotations: { "config.linkerd.io/proxy-uid": "7" } } });
    expect(unanswered).toMatch(/its metadata\.uid is "new", this pod's "old"/);
  });

  it("other pods must be tried again", () => {
    for (const annotations of [manual, undefined]) {
      expect(gather(annotations, "auto", other, "old").error).toMatch(/another has taken this pod's name/);
    }
  });

  it("a static pod is recognized by its mirror's annotation", () => {
    const mirror = podIs({ uid: "api", annotations: { ...manual, "kubernetes.io/config.mirror": "hash" } });
    expect(gather(manual, "auto", mirror, "hash").error).toBeUndefined();
    expect(gather(manual, "auto", mirror, "api").error).toBeUndefined();
    expect(gather(manual, "auto", mirror, "else").error).toMatch(/another has taken/);
  });

  it("an unknown UID, of runtime or API server, is ignored", () => {
    expect(gather(manual, "auto", other).error).toBeUndefined();
    expect(gather(manual, "auto", podIs({ annotations: manual }), "old").error).toBeUndefined();
  });
});

describe("a reduced object", () => {
  const { stanza } = readStanza({}, "linkerd-cni");

  /** The decision about a pod, or the error. */
  function decided(object: object, around: object): unknown {
    const get = (path: string) => {
      expect(isLookup(path)).toBe(true);
      return ok(path.includes("/pods/") ? object : around);
    };
    const pod = { namespace: "shop", name: "cart-1", uid: "u" };
    try {
      const { evidence } = gatherEvidence({ pod, annotations: undefined }, "auto", get);
      return decide(evidence.pod, evidence.around, stanza);
    } catch (error) {
      return (error as Error).message;
    }
  }

  const setting = fc.constantFrom(...Object.keys(SETTINGS).map((name) => `config.linkerd.io/${name}`));
  const value = fc.constantFrom("80", "1-9", "10.0.0.0/8", "7", "x", "");
  const annotations = fc.dictionary(fc.oneof(setting, fc.constantFrom(...Object.keys(injected), "note")), value);
  const labels = fc.dictionary(fc.constantFrom("linkerd.io/control-plane-component", "app"), value);
  const named = fc.record({ name: fc.constantFrom("app", "linkerd-proxy", "linkerd-init"), image: fc.string() });
  const list = fc.array(named, { maxLength: 3 });
  const nullable = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { freq: 20 });
  const metadata = fc.record(
    {
      name: fc.constantFrom("cart-1", "other"),
      uid: fc.constantFrom("u", "another"),
      annotations: nullable(annotations),
      labels: nullable(labels),
    },
    { requiredKeys: [] },
  );
  const spec = fc.record(
    { containers: list, initContainers: nullable(list), nodeName: fc.string() },
    { requiredKeys: [] },
  );
  const pod = fc.record(
    { kind: fc.constantFrom("Pod", "Status"), metadata, spec, status: fc.object() },
    { requiredKeys: [] },
  );
  const target = fc.oneof(fc.nat(70_000), fc.string());
  const port = fc.record({ port: fc.nat(70_000), targetPort: target, name: fc.string() }, { requiredKeys: [] });
  const ports = nullable(fc.array(port));
  const around = fc.oneof(
    fc.record({ kind: fc.constant("Namespace"), metadata: fc.record({ name: fc.constant("shop"), annotations }) }),
    fc.record({
      kind: fc.constant("Service"),
      metadata: fc.record({ name: fc.constant("kubernetes"), namespace: fc.constant("default") }),
      spec: fc.record({ ports }, { requiredKeys: [] }),
    }),
  );

  it("leads to the same decision as the whole one", () => {
    const same = fc.property(pod, around, (object, beside) => {
      const whole = decided(object, beside);
      expect(decided(reducedObject(object), reducedObject(beside))).toEqual(whole);
    });
    fc.assert(same, { numRuns: 1000 });
  });

  it("has no other annotations, labels or members", () => {
    const managed = { managedFields: [{}], ownerReferences: [{}] };
    const metadata = { ...managed, name: "cart-1", annotations: { ...manual, note: "n" }, labels: { app: "cart" } };
    const spec = { containers: [{ name: "app", env: [] }], volumes: [] };
    expect(JSON.parse(JSON.stringify(reducedObject({ kind: "Pod", metadata, spec, status: {} })))).toEqual({
      kind: "Pod",
      metadata: { name: "cart-1", annotations: manual, labels: {} },
      spec: { containers: [{ name: "app" }] },
    });
  });
});

it.each([
  ["/api/v1/namespaces/shop", true],
  ["/api/v1/namespaces/shop/pods/cart-1.a", true],
  ["/api/v1/namespaces/default/services/kubernetes", true],
  ["/api/v1/namespaces/default/services/other", false],
  ["/api/v1/namespaces/shop/pods", false],
  ["/api/v1/namespaces/shop/pods/", false],
  ["/api/v1/namespaces/shop/pods/a/exec", false],
  ["/api/v1/namespaces/shop/pods/a?x", false],
  ["/api/v1/namespaces/shop/secrets/a", false],
  ["/api/v1/namespaces/../pods/a", false],
  ["/api/v1/namespaces/%2e%2e/pods/a", false],
  ["/api/v1/namespacesXshop", false],
  ["/apis/v1/namespaces/shop", false],
  ["", false],
])("%s is a look-up: %s", (path, is) => expect(isLookup(path)).toBe(is));
