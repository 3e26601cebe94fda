import { runIn } from "../io.testing";

const POD = "kind: Pod\nmetadata: {name: cart, namespace: shop}\n";
const MAP = "kind: ConfigMap\nmetadata: {name: linkerd-cni-config, namespace: linkerd-cni}\n";
const OTHERS = `kind: Namespace\nmetadata: {name: shop}\n---\n${MAP}`;

const files = {
  "pod.yaml": POD,
  "none.yaml": OTHERS,
  "number.yaml": 'kind: Pod\nmetadata: {name: cart, annotations: {"config.linkerd.io/proxy-uid": 7}}\n',
  "broken.yaml": "kind: Pod\n metadata: [\n",
  "text.yaml": "hello\n",
  "stanza.yaml": `${POD}---\n${MAP}data: {cni_network_config: "{"}\n`,
};

test("a date is text, as for kubectl; and JSON is read as JSON", async () => {
  const dated =
    "kind: Pod\nmetadata: {name: cart, namespace: shop, annotations: {deployed: 2026-01-02}}\nspec: {containers: []}\n";
  const json = JSON.stringify({
    kind: "List",
    items: [{ kind: "Pod", metadata: { name: "cart", namespace: "shop" }, spec: { containers: [] } }],
  });
  for (const file of [dated, json, ` \n${json}\n`]) {
    const { code, out, err } = await runIn({ files: { file } }, ["explain", "-f", "file"]);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toContain("shop/cart");
  }
});

/** Command lines that fail, and what is said then. */
test.each([
  ["", "say which pod, [NAMESPACE/]POD, or give --file"],
  ["a/b/c", '"a/b/c" is not a pod: write [NAMESPACE/]POD'],
  ["shop/", '"shop/" is not a pod'],
  ["shop/cart -n other", "shop/cart and --namespace other name two namespaces: give one"],
  ["-f missing.yaml", "no file missing.yaml"],
  ["-f none.yaml", "none.yaml: holds no Pod, but Namespace, ConfigMap"],
  ["-f pod.yaml other", "pod.yaml: holds no pod other, but shop/cart"],
  ["-f number.yaml", 'Pod cart: metadata.annotations["config.linkerd.io/proxy-uid"]: 7 is not text: put it in quotes'],
  ["-f broken.yaml", "broken.yaml: "],
  ["-f text.yaml", "text.yaml: holds something that is no Kubernetes object"],
  ["-f stanza.yaml", "ConfigMap linkerd-cni/linkerd-cni-config: cni_network_config is not JSON"],
  ["cart", "kubectl is not on PATH: install it"],
  ["cart --rule", "Did you mean --rules?"],
])("explain %s fails, and nothing is printed", async (line, message) => {
  const { code, out, err } = await runIn({ files }, ["explain", ...line.split(" ").filter(Boolean)]);
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain(message);
});
