import type { Learned } from "../cni/known";
import { POD_LOOKUPS, type PodLookup } from "../cni/stanza";
import { type ApiResponse, ApiUnreachable } from "../kubernetes/api-server";
import { lookUp } from "./lookup";

const injected = { "linkerd.io/created-by": "linkerd/proxy-injector edge", "linkerd.io/proxy-version": "edge" };
const manual = { "linkerd.io/created-by": "linkerd/cli edge", "linkerd.io/proxy-version": "edge" };
const containers = [{ name: "app" }, { name: "linkerd-proxy" }];

type Api = (path: string) => ApiResponse;
const ok = (object: object): ApiResponse => ({ status: 200, body: JSON.stringify(object) });
const unreachable: Api = () => {
  throw new ApiUnreachable("10.0.0.1:443", "no answer within 5000 ms");
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

function learn(annotations: Record<string, string> | undefined, policy: PodLookup, api: Api) {
  const requests: string[] = [];
  const question = { pod: { namespace: "shop", name: "cart-1" }, annotations, policy, kubeconfig: "/etc/kubeconfig" };
  const get = (path: string) => {
    requests.push(path);
    return api(path);
  };
  let learned: Learned | string;
  try {
    learned = lookUp(question, get);
  } catch (error) {
    learned = (error as Error).message;
  }
  return { learned, requests: requests.length };
}

describe("where the runtime passes annotations", () => {
  it.each(["auto", "annotations"] as const)("a pod without a proxy takes no request (pod-lookup %s)", (policy) => {
    expect(learn({ a: "b" }, policy, unreachable)).toEqual({
      learned: { kind: "skip", reason: "no proxy" },
      requests: 0,
    });
  });

  it("a meshed pod that an injector made takes one", () => {
    const { learned, requests } = learn(injected, "auto", podIs({ annotations: injected }));
    expect(learned).toMatchObject({ kind: "pod", around: {}, pod: { containers: ["app", "linkerd-proxy"] } });
    expect(requests).toBe(1);
  });

  it("a meshed pod that none made takes two, for its namespace", () => {
    const { learned, requests } = learn(manual, "auto", podIs({ annotations: manual }));
    expect(learned).toMatchObject({ around: { namespace: { name: "shop", annotations: { from: "namespace" } } } });
    expect(requests).toBe(2);
  });

  it("a control-plane pod takes two, for the API server's ports", () => {
    const labels = { "linkerd.io/control-plane-component": "identity" };
    const { learned, requests } = learn(manual, "auto", podIs({ annotations: manual, labels }));
    expect(learned).toMatchObject({ around: { apiServerPorts: [443, 8443, 9] } });
    expect(requests).toBe(2);
  });

  it("a pod whose rules linkerd-init sets takes one, whoever made it", () => {
    const spec = { containers, initContainers: [{ name: "linkerd-init" }] };
    expect(learn(manual, "auto", podIs({ annotations: manual }, spec)).requests).toBe(1);
  });

  it.each([
    ["does not answer", unreachable],
    ["refuses the token", status(401)],
    ["fails", status(500)],
  ])("a meshed pod is decided by them where the API server %s", (_, api) => {
    const { learned } = learn(injected, "auto", api);
    expect(learned).toMatchObject({
      kind: "pod",
      because: expect.stringContaining("API server"),
      pod: { annotations: injected },
    });
  });

  it("but not one that no injector made, whose namespace may say more", () => {
    expect(learn(manual, "auto", unreachable).learned).toMatch(/no answer within 5000 ms.*\/etc\/kubeconfig/);
  });

  it("they decide alone where that is asked for", () => {
    const { learned, requests } = learn(injected, "annotations", unreachable);
    expect(learned).toMatchObject({ kind: "pod", pod: { containers: ["linkerd-proxy"] } });
    expect(requests).toBe(0);
  });

  it.each([
    ["the control plane's", { "linkerd.io/control-plane-component": "identity" }],
    ["made by hand", {}],
  ])("a meshed pod that no injector made is asked for there too: %s", (_, labels) => {
    const api = podIs({ annotations: manual, labels });
    expect(learn(manual, "annotations", api)).toEqual(learn(manual, "auto", api));
    expect(learn(manual, "annotations", unreachable).learned).toMatch(/no answer within 5000 ms/);
  });

  it("they do not count where the API server is to be asked", () => {
    expect(learn({}, "api", podIs({ annotations: injected })).requests).toBe(1);
    expect(learn(injected, "api", unreachable).learned).toMatch(/no answer/);
  });
});

describe("where it does not", () => {
  it.each(POD_LOOKUPS)("the API server decides (pod-lookup %s)", (policy) => {
    expect(learn(undefined, policy, podIs({}, { containers: [{ name: "app" }] })).requests).toBe(1);
    expect(learn(undefined, policy, unreachable).learned).toMatch(/cannot look up pod shop\/cart-1/);
  });

  it("an answer that is not the pod is an error", () => {
    expect(learn(undefined, "auto", status(404)).learned).toMatch(/answered 404 when asked for pod shop\/cart-1/);
    expect(learn(undefined, "auto", status(401)).learned).toMatch(/401.*\/etc\/kubeconfig has expired/);
    expect(learn(undefined, "auto", () => ({ status: 200, body: "<" })).learned).toMatch(/answer for pod/);
  });
});
