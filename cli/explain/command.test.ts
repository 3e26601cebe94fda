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

test("empty fields of a file are absent, as in Kubernetes", async () => {
  const pod = (rest: string) =>
    `kind: Pod\nmetadata: {name: cart, namespace: shop, annotations: {linkerd.io/proxy-version: x}}\n${rest}\n`;
  const meshed = "spec: {containers: [{name: linkerd-proxy}]}";
  const daemonSet = (containers: string) =>
    `---\nkind: DaemonSet\nmetadata: {name: linkerd-cni}\nspec: {template: {spec: {containers: [${containers}]}}}`;
  const texts = [
    "spec: {containers: [{name: app, securityContext: }, {name: linkerd-proxy}], securityContext: }\nstatus:",
    `${meshed}\nstatus: {initContainerStatuses: [null], podIPs: [null]}`,
    `${meshed}\n${daemonSet("null")}`,
    `${meshed}\n${daemonSet("{name: install-cni, env: [null]}")}`,
  ];
  for (const text of texts) {
    const { code, out, err } = await runIn({ files: { file: pod(text) } }, ["explain", "-f", "file"]);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toContain("shop/cart: would be redirected");
  }
});

test("a ConfigMap whose file names no namespace is called by its name alone", async () => {
  const file = "kind: Pod\nmetadata: {name: cart}\n---\nkind: ConfigMap\nmetadata: {name: linkerd-cni-config}\n";
  const { err } = await runIn({ files: { file } }, ["explain", "-f", "file"]);
  expect(err).toContain("ConfigMap linkerd-cni-config: has no key");
});

/** Failing command lines and their messages. */
test.each([
  ["", "say which pod, [NAMESPACE/]POD, or give --file"],
  ["-f pod.yaml deploy/web", "deploy/web: of a file, name its pods: [NAMESPACE/]POD"],
  ["a/b/c", '"a/b/c" is not a pod: write [NAMESPACE/]POD'],
  ["shop/", '"shop/" is not a pod'],
  ["shop/cart -n other", "shop/cart and --namespace other name two namespaces: give one"],
  ["-f missing.yaml", "no file missing.yaml"],
  ["-f none.yaml", "none.yaml: holds no Pod, but Namespace, ConfigMap"],
  ["-f pod.yaml other", "pod.yaml: holds no pod other, but shop/cart"],
  ["-f number.yaml", 'Pod cart: metadata.annotations["config.linkerd.io/proxy-uid"]: 7 is not text: put it in quotes'],
  ["-f broken.yaml", "broken.yaml: "],
  ["-f text.yaml", "text.yaml: contains something that is not a Kubernetes object"],
  ["-f stanza.yaml", "ConfigMap linkerd-cni/linkerd-cni-config: cni_network_config is not JSON"],
  ["cart", "kubectl is not on PATH: install it"],
  ["cart --rule", "Did you mean --rules?"],
])("explain %s fails, and nothing is printed", async (line, message) => {
  const { code, out, err } = await runIn({ files }, ["explain", ...line.split(" ").filter(Boolean)]);
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain(message);
});

/** A Deployment with pods, a CronJob with a Job, and the queries for them. */
function withOwners() {
  const owned = (kind: string, name: string, owner: string, containers: readonly object[] = []) => ({
    kind,
    metadata: {
      name,
      namespace: "shop",
      uid: name,
      annotations: { "linkerd.io/proxy-version": "edge" },
      ownerReferences: [{ uid: owner }],
    },
    spec: { containers },
  });
  const proxy = [{ name: "linkerd-proxy" }];
  const object = (uid: string) => ({ metadata: { name: "web", namespace: "shop", uid } });
  const objects: Readonly<Record<string, object>> = {
    ...{ "deploy web": object("d"), "deployment.apps web": object("d"), "Deployment web": object("d") },
    ...{ "cj web": object("c"), "sts web": object("s") },
    "namespace shop": { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } },
  };
  const items = [
    ...[owned("ReplicaSet", "web", "d"), owned("Job", "job", "c"), owned("Pod", "other", "another", proxy)],
    ...[owned("Pod", "web-1", "web", proxy), owned("Pod", "web-2", "web", proxy), owned("Pod", "web-3", "web")],
    owned("Pod", "web-4", "job", proxy),
  ];
  return (args: readonly string[]) => {
    const [, kind, name] = args.filter((word) => !word.startsWith("-"));
    const found = name === undefined ? { items } : objects[`${kind} ${name}`];
    return { code: 0, out: found === undefined ? "" : JSON.stringify(found), err: "" };
  };
}

test.each(["deploy/web", "deployment.apps/web", "Deployment/web"])(
  "explain %s explains its pods, equal ones once",
  async (owner) => {
    const { code, out } = await runIn({ programs: { kubectl: withOwners() } }, ["explain", owner, "-n", "shop"]);
    expect(code).toBe(0);
    expect(out.match(/^shop.*$/gm)).toEqual([
      "shop/web-1: would be redirected: it has a container linkerd-proxy",
      "shop/web-3: left alone: it has no container linkerd-proxy",
    ]);
    expect(out).toContain("  the same: shop/web-2\n");
  },
);

test("explain cronjob/web explains its Jobs' pods", async () => {
  const { out } = await runIn({ programs: { kubectl: withOwners() } }, ["explain", "cj/web", "-n", "shop"]);
  expect(out).toContain("shop/web-4: would be redirected");
});

test.each([
  ["sts/web", "sts shop/web has no pod, and only a pod shows"],
  ["ds/web", "no ds web in namespace shop"],
])("explain %s: %s", async (owner, message) => {
  const { code, err } = await runIn({ programs: { kubectl: withOwners() } }, ["explain", owner, "-n", "shop"]);
  expect([code, err]).toEqual([1, expect.stringContaining(message)]);
});
