import { apiServerPorts, namespaceFromObject, podFromObject } from "./api-objects";
import { CniError } from "./errors";

const name = { namespace: "shop", name: "cart-1" };
const metadata = { name: "cart-1" };
const spec = { containers: [{ name: "app" }, { name: "linkerd-proxy" }] };
const pod = { kind: "Pod", metadata, spec };

function refusal(decode: () => unknown): string {
  try {
    decode();
  } catch (error) {
    expect(error).toBeInstanceOf(CniError);
    expect((error as CniError).code).toBe(11);
    return (error as CniError).message;
  }
  return "taken";
}

describe("the answer for a pod", () => {
  it("has the fields for the decision", () => {
    const annotations = { a: "b" };
    const labels = { c: "d" };
    const initContainers = [{ name: "linkerd-init", image: 1 }];
    const full = { ...pod, metadata: { ...metadata, annotations, labels }, spec: { ...spec, initContainers } };
    expect(podFromObject(name, full)).toEqual({
      ...name,
      annotations,
      labels,
      containers: ["app", "linkerd-proxy"],
      initContainers: ["linkerd-init"],
    });
  });

  it("may omit optional fields or set them to null", () => {
    const bare = { ...name, annotations: {}, labels: {}, containers: [], initContainers: [] };
    expect(podFromObject(name, { ...pod, spec: { containers: [] } })).toEqual(bare);
    const nulls = { metadata: { ...metadata, annotations: null, labels: null } };
    expect(podFromObject(name, { ...pod, ...nulls, spec: { containers: [], initContainers: null } })).toEqual(bare);
  });

  it.each<[unknown, string]>([
    [[], 'its kind is "undefined"'],
    [null, 'its kind is "undefined"'],
    ["ok", 'its kind is "undefined"'],
    [{ ...pod, kind: "Status" }, 'its kind is "Status"'],
    [{ ...pod, kind: "PodList" }, 'its kind is "PodList"'],
    [{ ...pod, metadata: undefined }, 'its metadata.name is "undefined"'],
    [{ ...pod, metadata: { name: "other" } }, 'its metadata.name is "other"'],
    [{ ...pod, spec: undefined }, "its spec.containers is missing"],
    [{ ...pod, spec: {} }, "its spec.containers is missing"],
  ])("%j is refused", (answer, because) => {
    expect(refusal(() => podFromObject(name, answer))).toBe(
      `the API server's answer is not Pod shop/cart-1: ${because}`,
    );
  });
});

describe("the answer for a namespace", () => {
  const namespace = { kind: "Namespace", metadata: { name: "shop", annotations: { a: "b" } } };

  it("has its annotations", () => {
    expect(namespaceFromObject("shop", namespace)).toEqual({ name: "shop", annotations: { a: "b" } });
    expect(namespaceFromObject("shop", { ...namespace, metadata: { name: "shop" } }).annotations).toEqual({});
  });

  it.each<[unknown, string]>([
    [{}, 'its kind is "undefined"'],
    [pod, 'its kind is "Pod"'],
    [{ ...namespace, metadata: { name: "default" } }, 'its metadata.name is "default"'],
  ])("%j is refused", (answer, because) => {
    expect(refusal(() => namespaceFromObject("shop", answer))).toBe(
      `the API server's answer is not Namespace shop: ${because}`,
    );
  });
});

describe("the answer for the API server's service", () => {
  const service = { kind: "Service", metadata: { name: "kubernetes", namespace: "default" } };
  const ports = (given: unknown) => ({ ...service, spec: { ports: given } });

  it("has its ports and numeric target ports", () => {
    const named = { port: 9, targetPort: "https" };
    expect(apiServerPorts(ports([{ port: 443, targetPort: 6443 }, named, { port: 10 }]))).toEqual([443, 6443, 9, 10]);
    for (const none of [service, ports(null), ports([]), ports([{}])]) expect(apiServerPorts(none)).toBeUndefined();
  });

  it.each<[unknown, string]>([[{ kind: "Service", metadata: { name: "x" } }, 'its metadata.name is "x"']])(
    "%j is refused",
    (answer, because) => {
      expect(refusal(() => apiServerPorts(answer))).toBe(
        `the API server's answer is not Service default/kubernetes: ${because}`,
      );
    },
  );
});
