/**
 * Previous results, and linkerd's plugin's answer to each, which test/kernel/previous-results.test.ts verifies. Our
 * plugin accepts what linkerd's accepts.
 */
import type { CniVersion } from "./versions";

interface PreviousResult {
  /** The configuration's version. */
  readonly version: CniVersion;
  /** The previous result in the configuration. */
  readonly text: string;
  /**
   * `refuses` also holds if linkerd's plugin writes what it would refuse itself (`<nil>` for an absent address);
   * `refuses alone`: taken here, since nothing is wrong with it.
   */
  readonly verdict: "takes" | "refuses" | "refuses alone";
  /** The location in the message. */
  readonly place?: string;
}

type Row = readonly [verdict: PreviousResult["verdict"], members: object, place?: string];

const rows = (version: CniVersion, given: readonly Row[]): readonly PreviousResult[] =>
  given.map(([verdict, members, place]) => ({
    version,
    text: JSON.stringify({ cniVersion: version, ...members }),
    verdict,
    ...(place === undefined ? {} : { place }),
  }));

const ip = (member: unknown, more: object = {}) => ({ ips: [{ address: member, ...more }] });
const address = (text: unknown): Row => ["refuses", ip(text), "ips[0].address"];
const good = "10.1.1.2/24";
const route = (more: object) => ({ routes: [{ dst: "0.0.0.0/0", ...more }] });

export const previousResults: readonly PreviousResult[] = [
  ...rows("1.0.0", [
    ["takes", {}],
    ["takes", { interfaces: null, ips: null, routes: null, dns: null }],
    ["takes", { interfaces: [], ips: [], routes: [], dns: {}, extra: [1, null], ip4: { ip: "banana" } }],
    ["takes", { interfaces: [null], ips: [null], routes: [null] }],
    // Addresses.
    ...[good, "10.1.1.2/0", "10.1.1.2/024", "fd00::2/64", "::/0", "0001::/64"].map((text): Row => ["takes", ip(text)]),
    ...["::ffff:10.1.1.2/120", "::1.2.3.4/128", "1:2:3:4:5:6:7::/64"].map((text): Row => ["takes", ip(text)]),
    ...["banana", "", "10.1.1.2", "10.1.1.2/33", "10.1.1.2/+24", "10.1.1.2/24/1", " 10.1.1.2/24"].map(address),
    ...["10.1.1/8", "010.1.1.2/24", "fd00::2/129", "fe80::1%eth0/64", "00001::/64", "1::2::3/64"].map(address),
    ...["1.2.3.4::/64", "1:2:3:4:5:6:7:8::/64", "::01.2.3.4/128", "/24", null, 1, {}].map(address),
    ["refuses", { ips: [{}] }, "ips[0].address is missing"],
    ["refuses", { ips: [null, { gateway: "10.1.1.1" }] }, "ips[1].address is missing"],
    ["takes", { ips: [{ Address: good }] }],
    ["refuses", ip(good, { ADDRESS: "banana" }), "ips[0].ADDRESS"],
    ["refuses", { ips: {} }, "ips"],
    ["refuses", { ips: "x" }, "ips"],
    ["refuses", { ips: ["x"] }, "ips[0]"],
    ["refuses", { ips: [[]] }, "ips[0]"],
    ["refuses", { IPS: 1 }, "IPS"],
    ...["10.1.1.1", "fd00::1", "", null].map((gateway): Row => ["takes", ip(good, { gateway })]),
    ...["banana", "10.1.1.1/24", "010.1.1.1", "fe80::1%eth0", 1].map(
      (gateway): Row => ["refuses", ip(good, { gateway }), "ips[0].gateway"],
    ),
    ...[0, -1, 9, null].map((index): Row => ["takes", ip(good, { interface: index })]),
    ...["0", 1.5, 1e20, true].map((index): Row => ["refuses", ip(good, { interface: index }), "ips[0].interface"]),
    ["takes", ip(good, { version: 4 })],
    // Interfaces.
    ["takes", { interfaces: [{}, { name: "" }, { name: null, mac: "x", mtu: -1 }] }],
    ["refuses", { interfaces: [{ name: 1 }] }, "interfaces[0].name"],
    ["refuses", { interfaces: [{ name: "eth0", mac: 1 }] }, "interfaces[0].mac"],
    ["refuses", { interfaces: [{ name: "eth0", sandbox: {} }] }, "interfaces[0].sandbox"],
    ["refuses", { interfaces: [{ name: "eth0", mtu: "x" }] }, "interfaces[0].mtu"],
    ["refuses", { interfaces: [{ name: "eth0", socketPath: 1 }] }, "interfaces[0].socketPath"],
    ["refuses", { interfaces: [{ name: "eth0", pciID: 1 }] }, "interfaces[0].pciID"],
    ["refuses", { interfaces: {} }, "interfaces"],
    ["refuses", { interfaces: ["eth0"] }, "interfaces[0]"],
    // Routes.
    ["takes", route({ gw: "10.1.1.1", mtu: 1400, advmss: 1360, priority: 1, table: 0, scope: 253 })],
    ["takes", route({ gw: "", mtu: null, scope: null })],
    ["takes", { routes: [{ dst: "10.1.2.3/8", gw: null }] }],
    ["refuses", { routes: [{ gw: "10.1.1.1" }] }, "routes[0].dst is missing"],
    ["refuses", { routes: [{ dst: "banana" }] }, "routes[0].dst"],
    ["refuses", { routes: [{ dst: "10.0.0.0" }] }, "routes[0].dst"],
    ["refuses", { routes: [{ dst: null }] }, "routes[0].dst"],
    ["refuses", route({ gw: "x" }), "routes[0].gw"],
    ...["mtu", "advmss", "priority", "table", "scope"].map(
      (name): Row => ["refuses", route({ [name]: "x" }), `routes[0].${name}`],
    ),
    ["refuses", { routes: {} }, "routes"],
    ["refuses", { routes: ["x"] }, "routes[0]"],
    // DNS.
    ["takes", { dns: { nameservers: ["banana", null], domain: null, search: [], options: null, other: 1 } }],
    ...["x", 1, []].map((dns): Row => ["refuses", { dns }, "dns"]),
    ["refuses", { dns: { nameservers: "x" } }, "dns.nameservers"],
    ["refuses", { dns: { nameservers: [1] } }, "dns.nameservers[0]"],
    ["refuses", { dns: { domain: 1 } }, "dns.domain"],
    ["refuses", { dns: { search: [{}] } }, "dns.search[0]"],
    ["refuses", { dns: { options: "x" } }, "dns.options"],
    // Versions.
    ["refuses", { cniVersion: "9.0.0" }],
    ["refuses", { cniVersion: 1 }, "cniVersion"],
    ["refuses alone", { cniVersion: "" }],
  ]),
  ...rows("1.1.0", [
    ["takes", { interfaces: [{ name: "eth0", mtu: 1500, socketPath: "/s", pciID: "p" }] }],
    ["refuses", ip("banana"), "ips[0].address"],
  ]),
  ...(["0.3.0", "0.3.1", "0.4.0"] as const).flatMap((version) =>
    rows(version, [
      ["takes", { interfaces: [{ name: "eth0", mtu: "not of this version" }] }],
      ["takes", ip(good, { version: "4" })],
      ["refuses", ip(good, { version: 4 }), "ips[0].version"],
      ["refuses", ip("banana", { version: "4" }), "ips[0].address"],
    ]),
  ),
  ...(["0.1.0", "0.2.0"] as const).flatMap((version) =>
    rows(version, [
      ["takes", { ip4: { ip: good, gateway: "10.1.1.1", routes: [{ dst: "0.0.0.0/0" }] }, dns: {} }],
      ["takes", { ip6: { ip: "fd00::2/64" }, ip4: null }],
      ["takes", { ip4: { ip: good, routes: [null] } }],
      ["refuses", { ip4: { ip: "banana" } }, "ip4.ip"],
      ["refuses", { ip6: { ip: "banana" } }, "ip6.ip"],
      ["refuses", { ip4: {} }, "ip4.ip is missing"],
      ["refuses", { ip4: "x" }, "ip4"],
      ["refuses", { ip4: { ip: good, gateway: "x" } }, "ip4.gateway"],
      ["refuses", { ip4: { ip: good, routes: "x" } }, "ip4.routes"],
      ["refuses", { ip4: { ip: good, routes: [{ dst: "x" }] } }, "ip4.routes[0].dst"],
      ["refuses", { ip4: { ip: good, routes: [{ dst: "0.0.0.0/0", gw: "x" }] } }, "ip4.routes[0].gw"],
      ["refuses", { ip4: { ip: good }, dns: "x" }, "dns"],
      ["refuses alone", {}],
    ]),
  ),
];
