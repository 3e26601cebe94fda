import { readFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import type { LinkerdCniProps } from "../../constructs";
import { type CliRun, runIn } from "../io.testing";
import { installed } from "../resources";
import { isAttached } from "./explanation";

const prefix = "config.linkerd.io/";
const settings = (given: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(given).map(([name, value]) => [prefix + name, value]));

const MARK = { "linkerd.io/proxy-version": "edge-26.5.1" };
const INJECTED = { ...MARK, "linkerd.io/created-by": "linkerd/proxy-injector edge-26.5.1" };
const PROXY = { containers: [{ name: "app" }, { name: "linkerd-proxy" }] };

/** A pod, by default meshed by hand. */
const pod = (metadata: object = {}, spec: object = PROXY, status: object = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "cart", namespace: "shop", annotations: MARK, ...metadata },
  spec,
  status,
});
const namespace = (annotations: object = {}) => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name: "shop", annotations },
});
const configMap = (props: LinkerdCniProps = {}, stanza: object = {}) => {
  const made = installed(props, "linkerd-cni").find(({ kind }) => kind === "ConfigMap") as unknown as {
    metadata: object;
    data: { cni_network_config: string };
  };
  const read = JSON.parse(made.data.cni_network_config);
  return { ...made, data: { cni_network_config: JSON.stringify({ ...read, ...stanza }) } };
};

const installer = (props: LinkerdCniProps) =>
  installed(props, "linkerd-cni").find(
    ({ kind, metadata }) => kind === "DaemonSet" && metadata.name === "linkerd-cni",
  ) as object;
const unchained = installer({ chained: false });
const nri = (chained: boolean) => installer({ chained, nri: { enabled: true } });

const validator = (state: object) => ({ initContainerStatuses: [{ name: "linkerd-network-validator", state }] });

const text = (objects: readonly object[]) => objects.map((object) => stringify(object)).join("---\n");
const explained = (objects: readonly object[], ...args: readonly string[]): Promise<CliRun> =>
  runIn({ files: { "-": text(objects) } }, ["explain", "-f", "-", ...args]);

/** Objects, and the end of the first line of their explanation. */
const outcomes: readonly (readonly [string, readonly object[], string])[] = [
  ["a meshed pod", [pod()], "would be redirected: it has a container linkerd-proxy"],
  [
    "a native sidecar",
    [pod({}, { containers: [{ name: "app" }], initContainers: [{ name: "linkerd-proxy" }] })],
    "would be redirected: it has a native sidecar linkerd-proxy",
  ],
  ["no proxy", [pod({}, { containers: [{ name: "app" }] })], "left alone: it has no container linkerd-proxy"],
  [
    "a meshed pod whose validator has passed",
    [pod({}, PROXY, validator({ terminated: { exitCode: 0 } }))],
    "redirected: it has a container linkerd-proxy",
  ],
  [
    "a meshed pod whose validator failed",
    [pod({}, PROXY, validator({ terminated: { exitCode: 95 } }))],
    "would be redirected: it has a container linkerd-proxy",
  ],
  [
    "no annotation",
    [pod({ annotations: {} })],
    "left alone: it has no annotation linkerd.io/proxy-version, which every injector writes",
  ],
  [
    "no annotation, if the API server is always asked",
    [pod({ annotations: {} }), configMap({ podLookup: "api" })],
    "would be redirected: it has a container linkerd-proxy",
  ],
  [
    "linkerd-init",
    [pod({}, { ...PROXY, initContainers: [{ name: "linkerd-init" }] })],
    "left alone: its init container linkerd-init sets the rules",
  ],
  [
    "linkerd-init, if the API server is not asked about injected pods",
    [
      pod({ annotations: INJECTED }, { ...PROXY, initContainers: [{ name: "linkerd-init" }] }),
      configMap({ podLookup: "annotations" }),
    ],
    "would be redirected: it has a container linkerd-proxy",
  ],
  [
    "linkerd-init, if the API server is asked about others",
    [pod({}, { ...PROXY, initContainers: [{ name: "linkerd-init" }] }), configMap({ podLookup: "annotations" })],
    "left alone: its init container linkerd-init sets the rules",
  ],
  [
    "the installer's own",
    [pod({ name: "linkerd-cni-x7k2p", namespace: "linkerd-cni" }, { containers: [{ name: "install-cni" }] })],
    "left alone: it is one of the installer's own, which always start",
  ],
  [
    "the node's network",
    [pod({}, { ...PROXY, hostNetwork: true })],
    "left alone: it is in the node's own network (hostNetwork), for which container runtimes do not call CNI plugins",
  ],
  [
    "Multus, which is not asked to call the plugin",
    [pod(), unchained],
    "left alone: the plugin is not chained (chained: false), and k8s.v1.cni.cncf.io/networks does not make Multus call it: annotate the pod's namespace with linkerd.io/multus=enabled if chart linkerd-multus is installed, and recreate the pod, or give the pod k8s.v1.cni.cncf.io/networks: linkerd-cni",
  ],
  [
    "Multus, which is",
    [pod({ annotations: { ...MARK, "k8s.v1.cni.cncf.io/networks": "linkerd-cni" } }), unchained],
    "would be redirected: it has a container linkerd-proxy",
  ],
  ["the NRI plugin, without a chain", [pod(), nri(false)], "would be redirected: it has a container linkerd-proxy"],
  [
    "the NRI plugin, for which no runtime calls it either",
    [pod({}, { ...PROXY, hostNetwork: true }), nri(false)],
    "left alone: it is in the node's own network (hostNetwork), for which container runtimes do not call CNI plugins",
  ],
  [
    "the NRI plugin, which passes annotations whatever the configuration asks for",
    [
      pod({ annotations: INJECTED }, { ...PROXY, initContainers: [{ name: "linkerd-init" }] }),
      configMap({ podLookup: "annotations" }, { capabilities: {} }),
      nri(false),
    ],
    "would be redirected: it has a container linkerd-proxy",
  ],
  [
    "a bad annotation of the pod, by the NRI plugin",
    [pod({ annotations: { ...MARK, ...settings({ "proxy-uid": "x" }) } }), nri(false)],
    'does not start: the plugin fails with code 7: config.linkerd.io/proxy-uid on pod shop/cart: "x" is not a numeric id',
  ],
  [
    "simulated",
    [pod(), configMap({}, { linkerd: { simulate: true } })],
    "left alone: linkerd.simulate is true: the plugin only says what it would do",
  ],
  [
    "a bad annotation of the pod",
    [pod({ annotations: { ...MARK, ...settings({ "skip-subnets": "10.0.0.1" }) } })],
    'does not start: the plugin fails with code 7: config.linkerd.io/skip-subnets on pod shop/cart: "10.0.0.1" is not a network in CIDR notation',
  ],
  [
    "a bad annotation of the namespace",
    [pod(), namespace(settings({ "proxy-gid": "staff" }))],
    'does not start: the plugin fails with code 7: config.linkerd.io/proxy-gid on namespace shop: "staff" is not a numeric id',
  ],
  [
    "a bad stanza, and a meshed pod",
    [pod(), configMap({}, { linkerd: { ipv6: "yes" } })],
    'does not start: the plugin fails with code 7: linkerd.ipv6: "yes" is not true or false',
  ],
  [
    "a bad stanza, and a pod that is not meshed",
    [pod({ annotations: {} }, { containers: [{ name: "app" }] }), configMap({}, { linkerd: { ipv6: "yes" } })],
    "left alone: it has no container linkerd-proxy",
  ],
];

test.each(outcomes)("%s", async (_, objects, expected) => {
  const { code, out, err } = await explained(objects);
  expect(err).toBe("");
  expect(out.split("\n")[0]?.replace(/^\S+: /, "")).toBe(expected);
  expect(code).toBe(expected.startsWith("does not start") ? 1 : 0);
});

interface Json {
  readonly outcome: string;
  readonly settings?: readonly { readonly what: string; readonly value: string; readonly from: string }[];
  readonly notes: readonly string[];
}

async function json(objects: readonly object[]): Promise<Json> {
  const { out } = await explained(objects, "-o", "json");
  return (JSON.parse(out) as Json[])[0]!;
}

const rows = async (...objects: readonly object[]) =>
  (await json(objects)).settings?.map(({ what, value, from }) => `${what} ${value} (${from})`);

describe("the source of every setting", () => {
  test("the chart's defaults", async () => {
    expect(await rows(pod())).toEqual([
      "inbound TCP to any port, to the proxy's port 4143 (chart default)",
      "not to port 4191,4190 (chart default)",
      "outbound TCP to any port, to the proxy's port 4140 (chart default)",
      "not through lo (always)",
      "not of user 2102 (chart default)",
      "addresses IPv4 only (chart default)",
      "mode auto: over netlink, or by legacy iptables if the kernel has no nf_tables (chart default)",
    ]);
  });

  test("the ConfigMap, the namespace and the pod, each as a source", async () => {
    const map = configMap({
      inboundProxyPort: 5143,
      portsToRedirect: "80,443",
      ignoreOutboundPorts: "1",
      proxyGID: 2102,
      disableIPv6: false,
      iptablesMode: "nft",
    });
    const around = namespace(settings({ "skip-outbound-ports": "3306", "skip-subnets": "fd00::/8" }));
    const own = pod({
      annotations: { ...MARK, ...settings({ "skip-inbound-ports": " 25 , 80-90", "skip-subnets": "10.0.0.0/8" }) },
    });
    const of = "ConfigMap linkerd-cni/linkerd-cni-config";
    expect(await rows(map, around, own)).toEqual([
      `inbound TCP to ports 80,443, to the proxy's port 5143 (${of})`,
      `not to port 4191,4190 (${of} (chart default))`,
      "not to port 25,80-90 (config.linkerd.io/skip-inbound-ports on pod shop/cart)",
      "not from network 10.0.0.0/8 (config.linkerd.io/skip-subnets on pod shop/cart)",
      `outbound TCP to any port, to the proxy's port 4140 (${of} (chart default))`,
      "not through lo (always)",
      `not of user 2102 (${of} (chart default))`,
      `not of group 2102 (${of})`,
      "not to port 3306 (config.linkerd.io/skip-outbound-ports on namespace shop)",
      `addresses IPv4 and IPv6 (${of})`,
      `mode nft: by the node's iptables-nft (${of})`,
    ]);
  });

  test("the id of root, or none, exempts no traffic, as in the rules", async () => {
    const own = pod({ annotations: { ...MARK, ...settings({ "proxy-uid": "0", "proxy-gid": "0" }) } });
    expect((await rows(own))?.filter((row) => row.startsWith("not of"))).toEqual([]);
  });

  test("the API server's service, for a pod of the control plane", async () => {
    const destination = pod({ labels: { "linkerd.io/control-plane-component": "destination" } });
    const ports = [{ port: 443, targetPort: 8443 }];
    const service = {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "kubernetes", namespace: "default" },
      spec: { ports },
    };
    expect(await rows(destination)).toContain("not to port 443,6443 (the API server's usual ports)");
    expect(await rows(destination, service)).toContain("not to port 443,8443 (service default/kubernetes)");
  });
});

describe("notes", () => {
  const map = configMap();
  const dual = { podIPs: [{ ip: "10.0.0.5" }, { ip: "fd00::5" }] };
  const subnets = { annotations: { ...MARK, ...settings({ "skip-subnets": "fd00::/8" }) } };
  const init = { ...PROXY, initContainers: [{ name: "linkerd-init" }] };
  const around = namespace(settings({ "skip-inbound-ports": "25" }));
  const shop = namespace();

  const written = {
    ...map,
    metadata: {
      ...map.metadata,
      creationTimestamp: "2026-01-01T00:00:00Z",
      managedFields: [{ time: "2026-01-03T00:00:00Z" }],
    },
  };
  const run = (name: string, runAsUser?: number) => ({
    name,
    ...(runAsUser === undefined ? {} : { securityContext: { runAsUser } }),
  });
  const failed = {
    name: "linkerd-network-validator",
    ready: false,
    state: { waiting: {} },
    lastState: { terminated: { exitCode: 95 } },
  };
  const sidecar = {
    containers: [run("app")],
    initContainers: [run("migrate"), run("linkerd-proxy", 2102), run("warm")],
  };

  test.each([
    ["nothing", [map, shop, pod()], []],
    [
      "a pod that started before the ConfigMap was written",
      [written, shop, pod({}, PROXY, { startTime: "2026-01-02T00:00:00Z" })],
      [
        "it started at 2026-01-02T00:00:00Z, before the ConfigMap was last written (2026-01-03T00:00:00Z): it may be redirected by another configuration, or not at all: delete it so that it starts again",
      ],
    ],
    ["a pod that started after it", [written, shop, pod({}, PROXY, { startTime: "2026-01-04T00:00:00Z" })], []],
    [
      "a pod that its validator found without the redirect",
      [map, shop, pod({}, PROXY, { initContainerStatuses: [failed] })],
      [
        "its linkerd-network-validator ended with code 95: shop/cart is not redirected now, since it started before the chain was complete: delete it, or switch repairController.enabled on",
      ],
    ],
    [
      "an application that runs as the proxy does",
      [map, shop, pod({}, { containers: [run("app", 2102), run("linkerd-proxy", 2102)] })],
      [
        "container app runs as user 2102, as the proxy does: its outbound traffic bypasses the mesh: give it another runAsUser",
      ],
    ],
    [
      "all containers of which do",
      [map, shop, pod({}, { ...PROXY, securityContext: { runAsUser: 2102 } })],
      [
        "container app runs as user 2102, as the proxy does: its outbound traffic bypasses the mesh: give it another runAsUser",
      ],
    ],
    [
      "an init container before the proxy",
      [
        map,
        shop,
        pod(
          {},
          { ...PROXY, initContainers: [run("linkerd-network-validator"), run("migrate", 1000), run("dns", 2102)] },
        ),
      ],
      [
        'init container migrate: it runs before the proxy, and connections are refused then: if it needs the network, make the proxy a native sidecar (config.linkerd.io/proxy-enable-native-sidecar: "true"), run it as user 2102, or name its ports in config.linkerd.io/skip-outbound-ports',
      ],
    ],
    [
      "an init container before a native sidecar",
      [map, shop, pod({}, sidecar)],
      [
        "init container migrate: it runs before the proxy, and connections are refused then: if it needs the network, put it behind linkerd-proxy, run it as user 2102, or name its ports in config.linkerd.io/skip-outbound-ports",
      ],
    ],
    [
      "a proxy that runs as root",
      [map, shop, pod({ annotations: { ...MARK, ...settings({ "proxy-uid": "0" }) } })],
      [
        "no user is excepted, since an ID below 1 counts as unset: the proxy's own connections come back to it: set config.linkerd.io/proxy-uid to the proxy's user",
      ],
    ],
    ["no ConfigMap", [shop, pod()], ["there is no ConfigMap linkerd-cni-config here: the chart's defaults apply"]],
    ["no namespace", [map, pod()], ["namespace shop is not known here: its annotations would count too"]],
    [
      "an IPv6 address",
      [map, shop, pod({}, PROXY, dual)],
      ["it has the IPv6 address fd00::5, and connections over IPv6 bypass the proxy: set disableIPv6 to false"],
    ],
    ["an IPv6 address, with rules for it", [configMap({ disableIPv6: false }), shop, pod({}, PROXY, dual)], []],
    [
      "an IPv6 network",
      [map, shop, pod(subnets)],
      ["fd00::/8 has no effect while the rules are for IPv4 only: set disableIPv6 to false"],
    ],
    [
      "a namespace whose annotations do not count for an injected pod",
      [map, around, pod({ annotations: INJECTED })],
      [
        "config.linkerd.io/skip-inbound-ports on namespace shop does not count: the injector copied the namespace's settings when it made the pod: recreate the pod",
      ],
    ],
    [
      "a setting that the injector never copies",
      [map, namespace(settings({ "skip-inbound-subnets": "10.9.0.0/16" })), pod({ annotations: INJECTED })],
      [
        "config.linkerd.io/skip-inbound-subnets on namespace shop does not count: the injector does not copy it: put it on the pod",
      ],
    ],
    [
      "another one",
      [map, namespace(settings({ "skip-outbound-subnets": "10.9.0.0/16" })), pod({ annotations: INJECTED })],
      [
        "config.linkerd.io/skip-outbound-subnets on namespace shop does not count: the injector does not copy it: put it on the pod",
      ],
    ],
    [
      "a namespace whose settings the injector has copied",
      [map, around, pod({ annotations: { ...INJECTED, ...settings({ "skip-inbound-ports": "25" }) } })],
      [],
    ],
    [
      "another answer without annotations",
      [map, shop, pod({ annotations: {} })],
      [
        "if the runtime does not pass annotations (containerd before 1.5, CRI-O before 1.29), it is redirected: it has a container linkerd-proxy",
      ],
    ],
    [
      "another answer without annotations, by the policy",
      [configMap({ podLookup: "annotations" }), shop, pod({ annotations: INJECTED }, init)],
      [
        "if the runtime does not pass annotations (containerd before 1.5, CRI-O before 1.29), it is left alone: its init container linkerd-init sets the rules",
      ],
    ],
  ])("%s", async (_, objects, expected) => {
    expect((await json(objects)).notes).toEqual(expected);
  });
});

test("misspelt annotations are named, with what was probably meant", async () => {
  const file = readFileSync(join(__dirname, "..", "..", "test", "fixtures", "typos.yaml"), "utf8");
  const { out } = await runIn({ files: { file } }, ["explain", "-f", "file", "-o", "json"]);
  const [{ notes }] = JSON.parse(out);
  const pod = "on pod shop/web-1 has no effect: did you mean config.linkerd.io";
  expect(notes.filter((note: string) => /did you mean|deprecated/.test(note))).toEqual([
    `linkerd.io/skip-outbound-ports ${pod}/skip-outbound-ports?`,
    `config.linkerd.io/skip-oubound-ports ${pod}/skip-outbound-ports?`,
    "config.alpha.linkerd.io/proxy-enable-native-sidecar on pod shop/web-1 is deprecated: use config.linkerd.io/proxy-enable-native-sidecar",
    `config.linkerd.io/skip-inbound-port ${pod}/skip-inbound-ports?`,
    `config.linkerd.io/Skip-Outbound-Ports ${pod}/skip-outbound-ports?`,
    "config.linkerd.io/skip-oubound-ports on namespace shop has no effect: did you mean config.linkerd.io/skip-outbound-ports?",
  ]);
});

/** Annotations, and whether they are taken for a misspelt setting. */
test.each([
  ["config.linkerd.io/pod-inbound-ports", false],
  ["config.linkerd.io/opaque-ports", false],
  ["config.linkerd.io/inbound-port", false],
  ["config.linkerd.io/proxy-version", false],
  ["config.linkerd.io/proxy-await", false],
  ["proxy.istio.io/skip-inbound-ports", false],
  ["config.linkerd.io/proxy-udi", true],
  ["config.linkerd.io/skip-subnet", true],
  ["skip-outbound-ports", true],
])("%s is misspelt: %s", async (name, isMisspelt) => {
  const { notes } = await json([configMap(), namespace(), pod({ annotations: { ...MARK, [name]: "1" } })]);
  expect(notes.some((note) => note.includes("did you mean"))).toBe(isMisspelt);
});

test("--rules prints input for iptables-restore, for both families if both are redirected", async () => {
  const { out } = await explained([pod(), namespace(), configMap({ disableIPv6: false })], "--rules");
  const rules = out.slice(out.indexOf("# iptables"));
  expect(rules.match(/^(# \w+|\*nat|COMMIT)$/gm)).toEqual([
    "# iptables",
    "*nat",
    "COMMIT",
    "# ip6tables",
    "*nat",
    "COMMIT",
  ]);
  expect(rules).toContain("-A PROXY_INIT_OUTPUT -m owner --uid-owner 2102");
});

test("a list is explained pod by pod, a named pod separately", async () => {
  const list = {
    apiVersion: "v1",
    kind: "PodList",
    items: [pod({ name: "a" }), pod({ name: "b" })].map(({ kind, ...each }) => each),
  };
  const files = { "pods.json": JSON.stringify(list) };
  const all = await runIn({ files }, ["explain", "-f", "pods.json"]);
  expect(all.out.match(/^\S+: would/gm)).toEqual(["shop/a: would", "shop/b: would"]);
  const one = await runIn({ files }, ["explain", "-f", "pods.json", "b"]);
  expect(one.out.match(/^\S+: would/gm)).toEqual(["shop/b: would"]);
});

test("what sets the rules, and how, with the NRI plugin", async () => {
  const mode = configMap({ iptablesMode: "auto" });
  const lines = async (...objects: readonly object[]) =>
    (await explained([pod(), ...objects])).out.split("\n").filter((line) => /^ *(mode|set by) /.test(line));
  const [without, beside, alone] = [await lines(mode), await lines(mode, nri(true)), await lines(mode, nri(false))];
  expect(without).toEqual([expect.stringMatching(/^ *mode +auto: /)]);
  expect(beside).toEqual([
    expect.stringMatching(/^ *mode +auto: /),
    expect.stringMatching(/^ *set by +the chain, or else the NRI plugin +nri\.enabled$/),
  ]);
  expect(alone).toEqual([
    expect.stringMatching(/^ *mode +native: over netlink/),
    expect.stringMatching(/^ *set by +the NRI plugin, as the pod starts +chained: false$/),
  ]);
});

test("a validator that failed, if the NRI plugin repairs its pod", async () => {
  const validator = { name: "linkerd-network-validator", lastState: { terminated: { exitCode: 95 } } };
  const { out } = await explained([pod({}, PROXY, { initContainerStatuses: [validator] }), nri(true)]);
  expect(out.replace(/\s+/g, " ")).toContain(
    "shop/cart was not redirected then. The NRI plugin of its node sets the rules in place, and the validator's next run passes: if it does not, see l5d-cni check",
  );
});

test.each([
  [undefined, false],
  ["other,mesh/linkerd-cni-2", false],
  ['[{"name":"other"}, 1]', false],
  ["[", false],
  ["other, shop/linkerd-cni@eth1", true],
  ["linkerd-cni", true],
  ['[{"name":"linkerd-cni","namespace":"shop"}]', true],
])("whether a pod with networks %s is attached: %s", (networks, expected) => {
  expect(isAttached(networks)).toBe(expected);
});
