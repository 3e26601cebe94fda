/** Calls of the plugin that fast-check generates: likely ones, and absurd ones. */
import fc from "fast-check";
import { POD_ANNOTATIONS } from "../../cni/stanza";
import { VERBS } from "../../cni/verbs";
import { VERSIONS } from "../../cni/versions";
import { response } from "../../host/fake.testing";
import type { Call } from "./fork-server";

/** A worker's resources for its calls. */
export interface Surroundings {
  /** Namespaces that ADD changes, and that nothing ever changes. */
  readonly used: string;
  readonly untouched: string;
  /** Kubeconfigs: the first is right. */
  /** The directory of the installer's socket. */
  readonly runDir: string;
}

export interface MadeUp extends Call {
  /** All that the API server sends. */
  readonly response: string;
}

const anyText = fc.oneof(fc.string(), fc.string({ unit: "binary" }), fc.constantFrom("", "\n", "0", "true", "-1"));
const anyBytes = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));
const anyJson = fc.jsonValue({ maxDepth: 4 });

const port = fc.oneof({ weight: 60, arbitrary: fc.nat(65_535) }, { weight: 1, arbitrary: fc.integer() });
const range = fc.tuple(port, port).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
const ports = fc.oneof(
  { weight: 30, arbitrary: port.map(String) },
  { weight: 20, arbitrary: range },
  { weight: 1, arbitrary: fc.oneof(anyText, fc.tuple(port, port).map(String)) },
);
/** Another arbitrary, now and then. */
const mostly = <T>(usual: fc.Arbitrary<T>, rare: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 40, arbitrary: usual }, { weight: 1, arbitrary: rare });

const cidr = (ip: fc.Arbitrary<string>, longest: number) =>
  fc.tuple(ip, fc.nat(longest)).map(([address, length]) => `${address}/${length}`);
const subnet = fc.oneof(
  { weight: 20, arbitrary: cidr(fc.ipV4(), 32) },
  { weight: 4, arbitrary: cidr(fc.ipV6(), 128) },
  { weight: 1, arbitrary: fc.oneof(cidr(fc.ipV4(), 40), anyText) },
);
const injected = "linkerd/proxy-injector edge-26.7.1";
const injector = fc.constantFrom(injected, injected, injected, "linkerd/cli edge-26.7.1", "");
const annotation = (name: string) => `config.linkerd.io/${name}`;

const annotations = fc.record(
  {
    "linkerd.io/created-by": injector,
    "linkerd.io/proxy-version": fc.constantFrom("edge-26.7.1", "edge-26.7.1", "edge-26.7.1", ""),
    [annotation("skip-inbound-ports")]: fc.array(ports, { maxLength: 5 }).map(String),
    [annotation("skip-outbound-ports")]: fc.array(ports, { maxLength: 5 }).map(String),
    [annotation("skip-subnets")]: fc.array(subnet, { maxLength: 3 }).map(String),
    [annotation("proxy-uid")]: mostly(port.map(String), anyText),
    [annotation("proxy-gid")]: mostly(port.map(String), anyText),
  },
  { requiredKeys: ["linkerd.io/created-by", "linkerd.io/proxy-version"] },
);

const linkerd = fc.record(
  {
    "incoming-proxy-port": mostly(port, anyJson),
    "outgoing-proxy-port": port,
    "proxy-uid": mostly(port, anyJson),
    "proxy-gid": port,
    "ports-to-redirect": mostly(fc.array(port, { maxLength: 4 }), anyJson),
    "inbound-ports-to-ignore": mostly(fc.array(ports, { maxLength: 6 }), anyJson),
    "outbound-ports-to-ignore": fc.array(ports, { maxLength: 6 }),
    "subnets-to-ignore": fc.array(subnet, { maxLength: 4 }),
    simulate: mostly(fc.constantFrom(false, false, true), anyJson),
    "use-wait-flag": fc.boolean(),
    "iptables-mode": fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom("auto", "native") },
      { weight: 1, arbitrary: fc.constantFrom("nft", "legacy", "plain", "x") },
    ),
    "redirect-mode": fc.constantFrom("auto", "native", "native", "x"),
    ipv6: mostly(fc.boolean(), anyJson),
  },
  { requiredKeys: [] },
);

const address = fc.oneof(
  { weight: 15, arbitrary: cidr(fc.ipV4(), 32) },
  { weight: 15, arbitrary: cidr(fc.ipV6(), 128) },
  { weight: 1, arbitrary: anyText },
);
const result = fc.record(
  {
    cniVersion: mostly(fc.constantFrom("0.3.1", "0.4.0", "1.0.0"), fc.constantFrom(...VERSIONS, "9")),
    interfaces: mostly(fc.array(fc.record({ name: anyText, sandbox: anyText }), { maxLength: 3 }), anyJson),
    ips: mostly(
      fc.array(fc.record({ address, version: anyJson, interface: fc.nat() }, { requiredKeys: ["address"] }), {
        maxLength: 3,
      }),
      anyJson,
    ),
    routes: mostly(fc.array(fc.record({ dst: address, table: fc.nat() }), { maxLength: 3 }), anyJson),
    dns: anyJson,
    ip4: mostly(fc.record({ ip: address }), anyJson),
  },
  { requiredKeys: [] },
);

/** Results that every later plugin takes. */
const results = [
  { ips: [{ version: "4", address: "10.1.1.2/24" }] },
  {
    interfaces: [{ name: "eth0", sandbox: "/run/netns/pod" }],
    ips: [{ version: "6", address: "fd00::2/64", interface: 0 }],
  },
  { ips: [], routes: [{ dst: "0.0.0.0/0", gw: "10.1.1.1" }], dns: { nameservers: ["10.96.0.10"] } },
];

function configuration({ runDir }: Surroundings) {
  return fc.record(
    {
      cniVersion: mostly(
        fc.constantFrom("0.4.0", "1.0.0", "1.1.0", "1.1.0", ...VERSIONS),
        fc.oneof(anyJson, fc.constantFrom("9", "")),
      ),
      name: mostly(fc.constant("pods"), fc.oneof(anyJson, anyText)),
      type: fc.constant("linkerd-cni"),
      kubernetes: mostly(fc.constant({ kubeconfig: "/none" }), anyJson),
      "run-dir": fc.constant(runDir),
      linkerd: mostly(linkerd, anyJson),
      runtimeConfig: mostly(
        fc.record({ [POD_ANNOTATIONS]: mostly(annotations, fc.oneof(anyJson, fc.dictionary(anyText, anyText))) }),
        anyJson,
      ),
      "own-pods": mostly(fc.constant({ namespace: "shop", daemonset: "cart" }), anyJson),
      "pod-lookup": mostly(fc.constantFrom("auto", "api", "annotations"), anyJson),
      log_level: mostly(fc.constantFrom("debug", "info", "warn", "error"), anyJson),
      prevResult: fc.oneof(
        { weight: 20, arbitrary: fc.constantFrom(...results) },
        { weight: 6, arbitrary: result },
        { weight: 1, arbitrary: anyJson },
      ),
      "cni.dev/valid-attachments": mostly(fc.constantFrom(null, [], [{ containerID: "a", ifname: "b" }]), anyJson),
      "strict-status": mostly(fc.boolean(), anyJson),
      args: anyJson,
    },
    { requiredKeys: ["cniVersion", "name", "run-dir"] },
  );
}

/** Changes some bytes, and cuts. */
const damaged = (text: fc.Arbitrary<string>) =>
  fc
    .tuple(text, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }), fc.option(fc.nat(), { freq: 3 }))
    .map(([whole, changes, cut]) => {
      const bytes = Buffer.from(whole);
      for (const [at, value] of changes) if (bytes.length > 0) bytes[at % bytes.length] = value;
      return cut === null ? bytes : bytes.subarray(0, cut % (bytes.length + 1));
    });

const deep = fc
  .tuple(fc.constantFrom("[", '{"a":', '[{"a":'), fc.nat(300), fc.boolean())
  .map(([begin, depth, isWhole]) => {
    const end = [...begin].reverse().flatMap((char) => (char === "[" ? "]" : char === "{" ? "}" : []));
    return `{"cniVersion":"1.1.0","name":"pods","args":${begin.repeat(depth)}1${isWhole ? end.join("").repeat(depth) : ""}}`;
  });

/** Undefined if a configuration names none, or is not JSON. */
function runDirIn(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())?.["run-dir"];
  } catch {
    return undefined;
  }
}

function input(surroundings: Surroundings): fc.Arbitrary<Buffer> {
  const { runDir } = surroundings;
  const likely = configuration(surroundings).map((value) => JSON.stringify(value));
  const asBytes = (text: fc.Arbitrary<string>) => text.map((each) => Buffer.from(each));
  return fc.oneof(
    { weight: 40, arbitrary: asBytes(likely) },
    // The fake machine has no other directory of an installer.
    { weight: 3, arbitrary: damaged(likely).filter((bytes) => (runDirIn(bytes) ?? runDir) === runDir) },
    { weight: 1, arbitrary: asBytes(anyJson.map((value) => JSON.stringify(value))) },
    { weight: 1, arbitrary: asBytes(anyText) },
    { weight: 1, arbitrary: asBytes(deep) },
    { weight: 1, arbitrary: anyBytes },
  );
}

/** The kernel takes no NUL in a variable. */
const withoutNul = (bytes: Buffer) => Buffer.from(bytes.filter((byte) => byte !== 0));
const variable = (usual: string) =>
  fc.oneof(
    { weight: 50, arbitrary: fc.constant(Buffer.from(usual)) },
    {
      weight: 1,
      arbitrary: fc
        .oneof(
          anyText.map((text) => Buffer.from(text)),
          anyBytes,
        )
        .map(withoutNul),
    },
  );

const args = fc.oneof(
  { weight: 40, arbitrary: fc.constant("IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=cart-1;K8S_POD_UID=u") },
  { weight: 1, arbitrary: fc.constant("IgnoreUnknown=1;K8S_POD_NAME=cart-bbbbb;K8S_POD_NAMESPACE=shop") },
  {
    weight: 1,
    arbitrary: fc
      .tuple(anyText, anyText)
      .map(([namespace, name]) => `K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${name}`),
  },
  { weight: 1, arbitrary: anyText },
);

function environment({ used, untouched }: Surroundings) {
  const verbs = fc.oneof(
    { weight: 16, arbitrary: fc.constant("ADD") },
    { weight: 6, arbitrary: fc.constantFrom(...VERBS) },
    { weight: 1, arbitrary: anyText },
  );
  return fc
    .tuple(
      verbs,
      fc.record(
        {
          CNI_CONTAINERID: variable("c1"),
          CNI_IFNAME: variable("eth0"),
          CNI_PATH: variable("/opt/cni/bin"),
          CNI_ARGS: args.map((text) => withoutNul(Buffer.from(text))),
        },
        { requiredKeys: ["CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH"] },
      ),
      // Nothing of the machine may be there that the fake one has not.
      mostly(
        fc.constant(undefined),
        fc.oneof(
          fc.constant("/proc/self/ns/net"),
          anyText.map((text) => `/nowhere/${text}`),
        ),
      ),
    )
    .map(([verb, variables, netns]): Record<string, Buffer> => {
      const namespace = (netns as string | undefined) ?? (verb === "CHECK" ? untouched : used);
      const named = { CNI_COMMAND: verb, CNI_NETNS: namespace };
      const bytes = Object.entries(named).map(([name, text]) => [name, withoutNul(Buffer.from(text))] as const);
      return { ...variables, ...Object.fromEntries(bytes) };
    });
}

const containers = fc.array(
  fc.record({ name: fc.oneof(fc.constantFrom("linkerd-proxy", "linkerd-proxy", "app", "linkerd-init"), anyText) }),
  { maxLength: 3 },
);
const object = fc.record(
  {
    kind: fc.constantFrom("Pod", "Pod", "Pod", "Namespace", "Service", "Status"),
    apiVersion: fc.constant("v1"),
    metadata: mostly(
      fc.record(
        {
          name: fc.constantFrom("cart-1", "cart-1", "cart-1", "shop", "other"),
          namespace: fc.constantFrom("shop", "shop", "other"),
          annotations: mostly(annotations, anyJson),
          labels: mostly(fc.constant({ "linkerd.io/control-plane-component": "destination" }), anyJson),
        },
        { requiredKeys: ["name"] },
      ),
      anyJson,
    ),
    spec: mostly(fc.record({ containers, initContainers: containers }, { requiredKeys: ["containers"] }), anyJson),
  },
  { requiredKeys: ["kind", "metadata"] },
);
const body = fc.oneof(
  { weight: 8, arbitrary: object.map((value) => JSON.stringify(value)) },
  { weight: 1, arbitrary: anyJson.map((value) => JSON.stringify(value)) },
  { weight: 1, arbitrary: anyText },
);
const chunked = (text: string) => {
  const bytes = Buffer.from(text);
  const size = bytes.length === 0 ? "" : `${bytes.length.toString(16)}\r\n${text}\r\n`;
  return `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${size}0\r\n\r\n`;
};
const answer = fc.oneof(
  { weight: 8, arbitrary: body.map((text) => response(200, text)) },
  { weight: 1, arbitrary: body.map(chunked) },
  { weight: 1, arbitrary: body.map((text) => `HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.0 200 OK\r\n\r\n${text}`) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.constantFrom(401, 403, 404, 500, 302), body).map(([status, text]) => response(status, text)),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(body, fc.nat()).map(([text, cut]) => {
      const whole = response(200, text);
      return whole.slice(0, cut % (whole.length + 1));
    }),
  },
  { weight: 1, arbitrary: anyText },
);

/** Calls with the API server's answers to them. No answer at all would be asked for again for seconds. */
export function calls(surroundings: Surroundings): fc.Arbitrary<MadeUp> {
  const response = answer.filter((text) => text !== "");
  return fc.record({ env: environment(surroundings), stdin: input(surroundings), response });
}
