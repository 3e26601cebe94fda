import { decide, type Surroundings } from "./decide";
import { parseStanza } from "./parse-stanza";
import type { Pod } from "./pod";
import type { RedirectOptions } from "./redirect/options";
import { formatSubnet } from "./subnets";

const prefix = "config.linkerd.io/";
const meshed: Pod = {
  namespace: "shop",
  name: "cart-1",
  annotations: {},
  labels: {},
  containers: ["app", "linkerd-proxy"],
  initContainers: [],
};

function options(pod: Partial<Pod>, linkerd: object = {}, around: Surroundings = {}): RedirectOptions {
  const decision = decide({ ...meshed, ...pod }, around, parseStanza({ linkerd: linkerd as never }, "pods"));
  if (decision.kind === "skip") throw new Error(`skipped: ${decision.reason}`);
  return decision.options;
}
const settings = (values: Record<string, string>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [prefix + name, value]));
const ports = (ranges: RedirectOptions["skipInboundPorts"]) =>
  ranges.map(({ low, high }) => (low === high ? low : `${low}-${high}`));

describe("which pods", () => {
  it.each([
    [{ containers: ["app"] }, "no proxy"],
    [{ initContainers: ["linkerd-init"] }, "linkerd-init sets the rules"],
    [{ containers: ["app"], initContainers: ["linkerd-init", "linkerd-proxy"] }, "linkerd-init sets the rules"],
  ])("%j are left alone: %s", (pod, reason) => {
    expect(decide({ ...meshed, ...pod }, {}, parseStanza({}, "pods"))).toEqual({ kind: "skip", reason });
  });

  it("a native sidecar is also a proxy", () => {
    expect(options({ containers: ["app"], initContainers: ["linkerd-proxy"] }).inboundPort).toBe(4143);
  });
});

describe("settings", () => {
  it("has linkerd's defaults", () => {
    expect(options({})).toEqual({
      inboundPort: 4143,
      outboundPort: 4140,
      proxyUid: 2102,
      portsToRedirect: [],
      skipInboundPorts: [],
      skipOutboundPorts: [],
      skipInboundSubnets: [],
      skipOutboundSubnets: [],
      ipv6: false,
    });
  });

  it("annotations of the pod add to inbound ports and replace everything else", () => {
    const linkerd = {
      "inbound-ports-to-ignore": ["4191"],
      "outbound-ports-to-ignore": ["1"],
      "subnets-to-ignore": ["10.0.0.0/8"],
      "outbound-subnets-to-ignore": ["11.0.0.0/8"],
      "proxy-gid": 5,
    };
    const annotations = settings({
      "skip-inbound-ports": " 80, 443 ,8000 - 8010 ",
      "skip-outbound-ports": "3306",
      "skip-subnets": "fd00::/8, 192.168.0.0/16",
      "skip-outbound-subnets": "172.16.0.0/12",
      "proxy-uid": "7",
      "proxy-gid": "0",
    });
    const found = options({ annotations }, linkerd);
    expect(ports(found.skipInboundPorts)).toEqual([4191, 80, 443, "8000-8010"]);
    expect(ports(found.skipOutboundPorts)).toEqual([3306]);
    expect(found.skipInboundSubnets.map(({ text }) => text)).toEqual(["fd00::/8", "192.168.0.0/16"]);
    expect(found.skipOutboundSubnets.map(({ text }) => text)).toEqual(["172.16.0.0/12"]);
    expect(found.proxyUid).toBe(7);
    expect(found.proxyGid).toBeUndefined();
  });

  it("come from the namespace if the pod's is absent or empty", () => {
    const namespace = {
      name: "shop",
      annotations: settings({ "skip-outbound-ports": "1", "skip-inbound-ports": "2" }),
    };
    const annotations = settings({ "skip-outbound-ports": " ", "skip-inbound-ports": "3" });
    const found = options({ annotations }, { "outbound-ports-to-ignore": ["9"] }, { namespace });
    expect(ports(found.skipOutboundPorts)).toEqual([1]);
    expect(ports(found.skipInboundPorts)).toEqual([3]);
  });

  it("of a control-plane pod leave out the API server's ports", () => {
    const labels = { "linkerd.io/control-plane-component": "destination" };
    expect(ports(options({ labels }).skipOutboundPorts)).toEqual([443, 6443]);
    expect(ports(options({ labels }, {}, { apiServerPorts: [1, 2] }).skipOutboundPorts)).toEqual([1, 2]);
    expect(ports(options({ labels: { "linkerd.io/control-plane-component": "" } }).skipOutboundPorts)).toEqual([]);
  });

  // test/kernel/parity.test.ts compares these with linkerd's plugin.
  it.each<[string, (string | number)[]]>([
    ["80,443,", [80, 443]],
    ["80,,443", [80, 443]],
    [" , ,", []],
    ["80,\t443 ,\n1 - 2", [80, 443, "1-2"]],
    ["0", [0]],
    ["0-1024", ["0-1024"]],
    ["65535", [65535]],
    ["080,+443,000000000001-02", [80, 443, "1-2"]],
    ["2,1,2,1-3", [2, 1, 2, "1-3"]],
  ])("ports %j are accepted", (text, wanted) => {
    const annotations = settings({ "skip-inbound-ports": text });
    expect(ports(options({ annotations }).skipInboundPorts)).toEqual(wanted);
    expect(ports(options({}, {}, { namespace: { name: "shop", annotations } }).skipInboundPorts)).toEqual(wanted);
    const linkerd = { "inbound-ports-to-ignore": [text], "outbound-ports-to-ignore": text.split(",") };
    expect(ports(options({}, linkerd).skipInboundPorts)).toEqual(wanted);
    expect(ports(options({}, linkerd).skipOutboundPorts)).toEqual(wanted);
  });

  it("skip-inbound-subnets wins over linkerd's name skip-subnets on the same object", () => {
    const first = (pod: Record<string, string>, namespace: Record<string, string> = {}) =>
      options({ annotations: settings(pod) }, {}, { namespace: { name: "shop", annotations: settings(namespace) } })
        .skipInboundSubnets.map(({ text }) => text)
        .join();
    expect(first({ "skip-inbound-subnets": "10.0.0.0/8" })).toBe("10.0.0.0/8");
    expect(first({ "skip-inbound-subnets": "10.0.0.0/8", "skip-subnets": "10.1.0.0/16" })).toBe("10.0.0.0/8");
    expect(first({ "skip-inbound-subnets": " ", "skip-subnets": "10.1.0.0/16" })).toBe("10.1.0.0/16");
    expect(first({ "skip-subnets": "10.1.0.0/16" }, { "skip-inbound-subnets": "10.2.0.0/16" })).toBe("10.1.0.0/16");
    expect(first({}, { "skip-inbound-subnets": "10.2.0.0/16" })).toBe("10.2.0.0/16");
    expect(first({ "skip-inbound-subnets": "10.0.0.0/8" }, { "skip-subnets": "10.2.0.0/16" })).toBe("10.0.0.0/8");
  });

  it("an empty item of a list of networks is ignored", () => {
    const annotations = settings({ "skip-subnets": "10.0.0.0/8,, fd00::/8," });
    const found = options({ annotations }, { "outbound-subnets-to-ignore": ["", "11.0.0.0/8"] });
    expect(found.skipInboundSubnets.map(({ text }) => text)).toEqual(["10.0.0.0/8", "fd00::/8"]);
    expect(found.skipOutboundSubnets.map(({ text }) => text)).toEqual(["11.0.0.0/8"]);
  });

  it.each<[string, number | undefined]>([
    ["-1", undefined],
    ["0", undefined],
    ["-9999999999999", undefined],
    ["+5", 5],
    ["007", 7],
    ["4294967294", 4_294_967_294],
  ])("id %s is %s", (text, wanted) => {
    const annotations = settings({ "proxy-uid": text, "proxy-gid": text });
    for (const found of [options({ annotations }), options({}, {}, { namespace: { name: "shop", annotations } })]) {
      expect([found.proxyUid, found.proxyGid]).toEqual([wanted, wanted]);
    }
    const linkerd = { "proxy-uid": Number(text), "proxy-gid": Number(text) };
    if (Number(text) >= -5) expect(options({}, linkerd).proxyUid).toBe(wanted);
  });

  it.each([
    ["skip-inbound-ports", "foo", "a port or a range low-high"],
    ["skip-inbound-ports", "http", "a port or a range low-high", "80, http,443"],
    ["skip-outbound-ports", "65536", "a port or a range low-high"],
    ["skip-outbound-ports", "70000", "a port or a range low-high", ",70000,"],
    ["skip-outbound-ports", "90-80", "a port or a range low-high"],
    ["skip-outbound-ports", "80-", "a port or a range low-high"],
    ["skip-outbound-ports", "-80", "a port or a range low-high"],
    ["skip-outbound-ports", "-", "a port or a range low-high"],
    ["skip-outbound-ports", "+", "a port or a range low-high"],
    ["skip-outbound-ports", "1-2-3", "a port or a range low-high"],
    ["skip-outbound-ports", "80 443", "a port or a range low-high"],
    ["skip-outbound-ports", "0x50", "a port or a range low-high"],
    ["skip-outbound-ports", "\u0661", "a port or a range low-high"],
    ["skip-outbound-ports", "99999999999999999999999", "a port or a range low-high"],
    ["skip-subnets", "10.0.0.1", "a network in CIDR notation"],
    ["skip-inbound-subnets", "10.0.0.1", "a network in CIDR notation"],
    ["skip-outbound-subnets", "x/8", "a network in CIDR notation"],
    ["skip-subnets", "::ffff:10.0.0.0/104", "written as IPv4: write 10.0.0.0/8"],
    ["skip-outbound-subnets", "::FFFF:a00:1/128", "written as IPv4: write 10.0.0.1/32"],
    ["proxy-uid", "x", "a numeric id"],
    ["proxy-uid", "1.5", "a numeric id"],
    ["proxy-uid", "5 0", "a numeric id"],
    ["proxy-uid", "0x10", "a numeric id"],
    ["proxy-uid", "-", "a numeric id"],
    ["proxy-gid", "4294967295", "a numeric id"],
  ])("%s %s is refused with its location", (name, item, wanted, text = item) => {
    const annotations = settings({ [name]: text });
    const message = (place: string) => `${prefix}${name} on ${place}: "${item}" is not ${wanted}`;
    expect(() => options({ annotations })).toThrow(message("pod shop/cart-1"));
    const namespace = { name: "shop", annotations };
    expect(() => options({}, {}, { namespace })).toThrow(message("namespace shop"));
  });
});

describe("lists longer than any need", () => {
  const odd = (count: number) => Array.from({ length: count }, (_, index) => 2 * index + 1);
  const hosts = (count: number) => Array.from({ length: count }, (_, index) => `10.${index >> 8}.${index & 255}.1/32`);

  it("stay as written up to a thousand items", () => {
    const text = [...odd(999).reverse(), 1].join();
    expect(ports(options({ annotations: settings({ "skip-inbound-ports": text }) }).skipInboundPorts).join()).toBe(
      text,
    );
    const networks = ["10.0.0.0/8", ...hosts(998), "10.0.0.0/8"].join();
    const found = options({ annotations: settings({ "skip-subnets": networks }) });
    expect(found.skipInboundSubnets.map((subnet) => subnet.text).join()).toBe(networks);
  });

  it("are merged beyond that", () => {
    const all = Array.from({ length: 5000 }, (_, index) => 5000 - index).join();
    const found = options({
      annotations: settings({
        "skip-inbound-ports": all,
        "skip-outbound-ports": [...odd(1000), ...odd(1000), "1-7"].join(),
        "skip-subnets": [...hosts(4900), "10.0.0.0/8", "fd00::/8", "10.0.0.1/8"].join(),
      }),
    });
    expect(ports(found.skipInboundPorts)).toEqual(["1-5000"]);
    expect(ports(found.skipOutboundPorts)).toEqual(["1-7", ...odd(1000).slice(4)]);
    expect(found.skipInboundSubnets.map(formatSubnet)).toEqual(["10.0.0.0/8", "fd00::/8"]);
  });

  it.each([
    ["skip-inbound-ports", odd(5000).join(), "5000 ranges of ports"],
    ["skip-outbound-ports", odd(1001).join(), "1001 ranges of ports"],
    ["skip-subnets", hosts(1001).join(), "1001 networks"],
    ["skip-outbound-subnets", [...hosts(2500), ...hosts(2500)].join(), "2500 networks"],
  ])("are refused in %s if they are still too long", (name, text, count) => {
    const message = (place: string) =>
      `${prefix}${name} on ${place}: ${count} are too many, even merged: at most 1000 are allowed`;
    const annotations = settings({ [name]: text });
    expect(() => options({ annotations })).toThrow(message("pod shop/cart-1"));
    expect(() => options({}, {}, { namespace: { name: "shop", annotations } })).toThrow(message("namespace shop"));
  });

  it.each([
    ["skip-inbound-ports", "1,"],
    ["skip-outbound-ports", ","],
    ["skip-subnets", "::/0,"],
    ["skip-outbound-subnets", "not read,"],
  ])("are not read in %s if they are much longer", (name, item) => {
    expect(() => options({ annotations: settings({ [name]: item.repeat(5001) }) })).toThrow(
      `${prefix}${name} on pod shop/cart-1: a list of more than 5000 items is too long`,
    );
  });

  it("are also refused in the configuration", () => {
    const chosen = (count: number) => ({ "ports-to-redirect": Array.from({ length: count }, (_, at) => at) });
    expect(options({}, chosen(1000)).portsToRedirect).toHaveLength(1000);
    expect(() => options({}, chosen(1001))).toThrow(
      "linkerd.ports-to-redirect of network pods: 1001 ports are too many: at most 1000 are allowed",
    );
    const linkerd = { "inbound-ports-to-ignore": odd(1001).map(String) };
    expect(() => options({}, linkerd)).toThrow(
      "linkerd.inbound-ports-to-ignore of network pods: 1001 ranges of ports are too many",
    );
  });
});
