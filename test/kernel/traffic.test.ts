/** Real connections through the rules that the built plugin sets, in each mode and family. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { bundle } from "../../build/bundle";
import { root } from "../../build/paths";
import { config } from "../../plugin/protocol-cases.testing";
import { ApiStub, json } from "../support/api-server";
import { hasProgram, namespacesMissing } from "../support/netns";
import { PluginNode } from "../support/plugin";
import { suite } from "../support/requirements";

const missing =
  namespacesMissing() ??
  (process.getuid?.() === 0 ? undefined : "root") ??
  (hasProgram("iptables-legacy") && hasProgram("iptables-nft") ? undefined : "iptables") ??
  (hasProgram("python3") ? undefined : "python3");

const families = {
  4: {
    pod: "10.99.0.2",
    outside: "10.99.0.1",
    skippedSource: "10.98.0.1",
    skippedDestination: "10.97.0.1",
    loopback: "127.0.0.1",
    length: 24,
    host: 32,
  },
  6: {
    pod: "fd99::2",
    outside: "fd99::1",
    skippedSource: "fd98::1",
    skippedDestination: "fd97::1",
    loopback: "::1",
    length: 64,
    host: 128,
  },
} as const;
type Family = keyof typeof families;

const linkerd = {
  ipv6: true,
  "proxy-uid": 2102,
  "proxy-gid": 2103,
  "inbound-ports-to-ignore": ["9090", "9100-9110"],
  "outbound-ports-to-ignore": ["3306", "5000-5010"],
  "subnets-to-ignore": ["10.98.0.0/16", "fd98::/16"],
  "outbound-subnets-to-ignore": ["10.97.0.0/16", "fd97::/16"],
};
const counted = <T>(make: (index: number) => T) => Array.from({ length: 20 }, (_, index) => make(index));
const elsewhere = counted((index) => [`172.16.${2 * index}.0/24`, `fd96:${2 * index}::/32`]).flat();
/** The same among so many more that they are looked up in sets. */
const longer = {
  ...linkerd,
  "inbound-ports-to-ignore": [...counted((index) => `${20_000 + 3 * index}`), ...linkerd["inbound-ports-to-ignore"]],
  "outbound-ports-to-ignore": [...counted((index) => `${2 * index + 1}`), ...linkerd["outbound-ports-to-ignore"]],
  "subnets-to-ignore": [...elsewhere, ...linkerd["subnets-to-ignore"]],
  "outbound-subnets-to-ignore": [...linkerd["outbound-subnets-to-ignore"], ...elsewhere],
};
const podListeners = { 4143: "inbound", 4140: "outbound", 8080: "app", 8081: "app", 9090: "app", 9105: "app" };
const outsideListeners = { 80: "outside", 3306: "outside", 5005: "outside" };

/** Connections: caller, user, destination, and who answers; the original destination must always be the caller's. */
interface Probe {
  readonly title: string;
  readonly at: "pod" | "outside";
  readonly to: "pod" | "outside" | "skippedDestination" | "loopback";
  readonly port: number;
  readonly user?: number;
  readonly group?: number;
  readonly from?: "skippedSource";
  readonly answers: string;
}

const probes: readonly Probe[] = [
  { title: "inbound goes to the proxy", at: "outside", to: "pod", port: 8080, answers: "inbound" },
  { title: "to a skipped inbound port it does not", at: "outside", to: "pod", port: 9090, answers: "app" },
  { title: "nor to one in a skipped range", at: "outside", to: "pod", port: 9105, answers: "app" },
  { title: "nor from a skipped network", at: "outside", to: "pod", port: 8080, from: "skippedSource", answers: "app" },
  { title: "outbound goes to the proxy", at: "pod", to: "outside", port: 80, user: 1000, answers: "outbound" },
  { title: "outbound of root too", at: "pod", to: "outside", port: 80, answers: "outbound" },
  { title: "the proxy's user goes out", at: "pod", to: "outside", port: 80, user: 2102, answers: "outside" },
  {
    title: "the proxy's group goes out",
    at: "pod",
    to: "outside",
    port: 80,
    user: 1000,
    group: 2103,
    answers: "outside",
  },
  { title: "a skipped outbound port is direct", at: "pod", to: "outside", port: 3306, user: 1000, answers: "outside" },
  { title: "a skipped outbound range is direct", at: "pod", to: "outside", port: 5005, user: 1000, answers: "outside" },
  {
    title: "a skipped network is direct",
    at: "pod",
    to: "skippedDestination",
    port: 80,
    user: 1000,
    answers: "outside",
  },
  { title: "loopback is direct", at: "pod", to: "loopback", port: 8080, user: 1000, answers: "app" },
  { title: "the pod's own address is direct", at: "pod", to: "pod", port: 8080, user: 1000, answers: "app" },
];

suite("traffic", missing, () => {
  const started: ChildProcess[] = [];
  let api: ApiStub;
  let plugin: PluginNode;

  beforeAll(async () => {
    api = await ApiStub.start(
      json(200, {
        kind: "Pod",
        metadata: { name: "cart-1", annotations: { "linkerd.io/created-by": "linkerd/proxy-injector x" } },
        spec: { containers: [{ name: "linkerd-proxy" }] },
      }),
    );
    plugin = await PluginNode.open(api);
    await bundle(join(root, "test", "support", "caller.ts"), join(plugin.directory, "caller.js"));
  });
  afterAll(async () => {
    for (const child of started) child.kill("SIGKILL");
    await plugin.close();
    api.close();
  });

  async function listen(netns: string, listeners: Readonly<Record<string, string>>): Promise<void> {
    const script = join(root, "test", "support", "listener.py");
    const pairs = Object.entries(listeners).map(([port, name]) => `${port}=${name}`);
    const child = spawn("nsenter", [`--net=${netns}`, "python3", script, ...pairs], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    started.push(child);
    await once(child.stdout, "data");
  }

  /** A pod and an outside, joined by a veth pair, with everybody listening. */
  async function sandbox(): Promise<Record<"pod" | "outside", string>> {
    const [pod, outside] = [await plugin.node.pod(), await plugin.node.pod()];
    const ip = (netns: string, line: string) => plugin.node.within(netns, "ip", line.split(" "));
    ip(outside, `link add veth0 type veth peer name eth0 netns ${pod.split("/")[2]}`);
    for (const { pod: inside, outside: out, skippedSource, skippedDestination, length, host } of Object.values(
      families,
    )) {
      const flags = length === 64 ? " nodad" : "";
      ip(pod, `addr add ${inside}/${length} dev eth0${flags}`);
      ip(outside, `addr add ${out}/${length} dev veth0${flags}`);
      for (const extra of [skippedSource, skippedDestination]) ip(outside, `addr add ${extra}/${host} dev lo${flags}`);
    }
    ip(pod, "link set eth0 up");
    ip(outside, "link set veth0 up");
    for (const { outside: out } of Object.values(families)) ip(pod, `route add default via ${out}`);
    await Promise.all([listen(pod, podListeners), listen(outside, outsideListeners)]);
    return { pod, outside };
  }

  async function answer(namespaces: Record<"pod" | "outside", string>, family: Family, probe: Probe): Promise<string> {
    const addresses = families[family];
    const { at, to, port, user = 0, group = 0, from } = probe;
    const args = [addresses[to], `${port}`, `${user}`, `${group}`, from === undefined ? "" : addresses[from]];
    const script = [process.execPath, join(plugin.directory, "caller.js"), ...args];
    const env = { PATH: process.env["PATH"] ?? "" };
    return (await plugin.node.run("nsenter", [`--net=${namespaces[at]}`, ...script], { env })).stdout;
  }

  function destination(family: Family, { to, port }: Probe): string {
    const address = families[family][to];
    return family === 4 ? `${address}:${port}` : `[${address}]:${port}`;
  }

  describe.each([
    ["native", "", linkerd],
    ["native", " with long lists", longer],
    ["nft", "", linkerd],
    ["legacy", "", linkerd],
  ])("in mode %s%s", (mode, _, linkerd) => {
    let namespaces: Record<"pod" | "outside", string>;

    beforeAll(async () => {
      namespaces = await sandbox();
      const stdin = { ...config, linkerd: { ...linkerd, "iptables-mode": mode } };
      const { status, stderr } = await plugin.call(plugin.environment(namespaces.pod), stdin);
      expect([status, stderr]).toEqual([0, `linkerd-cni: info: redirected, by ${mode}\n`]);
      const checked = await plugin.call(plugin.environment(namespaces.pod, { CNI_COMMAND: "CHECK" }), stdin);
      expect([checked.status, checked.stdout]).toEqual([0, ""]);
    });

    describe.each([4, 6] as const)("IPv%d", (family) => {
      it.each(probes)("$title", async (probe) => {
        const got = await answer(namespaces, family, probe);
        expect(got.split(" ")[0]).toBe(probe.answers);
        if (["inbound", "outbound"].includes(probe.answers))
          expect(got).toBe(`${probe.answers} ${destination(family, probe)}`);
      });
    });
  });

  it("only selected ports are redirected if some are selected", async () => {
    const namespaces = await sandbox();
    const stdin = { ...config, linkerd: { "ports-to-redirect": [8080] } };
    expect((await plugin.call(plugin.environment(namespaces.pod), stdin)).status).toBe(0);
    const probe = (port: number): Probe => ({ title: "", at: "outside", to: "pod", port, answers: "" });
    expect(await answer(namespaces, 4, probe(8080))).toMatch(/^inbound 10\.99\.0\.2:8080$/);
    expect(await answer(namespaces, 4, probe(8081))).toMatch(/^app /);
    expect(await answer(namespaces, 6, probe(8080))).toMatch(/^app /);
  });
});
