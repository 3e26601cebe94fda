/** The program of `helm test`, in pods that the built plugin has redirected and in others. */
import { config } from "../../plugin/protocol-cases.testing";
import { ApiStub, json } from "../support/api-server";
import { namespacesMissing } from "../support/netns";
import { PluginNode } from "../support/plugin";
import { suite } from "../support/requirements";

const linkerd = { "proxy-uid": 2102, ipv6: true, "iptables-mode": "native" };
const ADDRESSES = ["10.99.0.2", "fd99::2"];

suite("the program of helm test", namespacesMissing(), () => {
  let api: ApiStub;
  let plugin: PluginNode;

  beforeAll(async () => {
    const metadata = { name: "cart-1", annotations: { "linkerd.io/created-by": "linkerd/proxy-injector x" } };
    api = await ApiStub.start(json(200, { kind: "Pod", metadata, spec: { containers: [{ name: "linkerd-proxy" }] } }));
    plugin = await PluginNode.open(api);
  });
  afterAll(async () => {
    await plugin.close();
    api.close();
  });

  /** A pod that has a route to nowhere. */
  async function pod(): Promise<string> {
    const netns = await plugin.node.pod();
    const ip = (line: string) => plugin.node.within(netns, "ip", line.split(" "));
    ip("link add eth0 type veth peer name peer0");
    for (const address of ADDRESSES) {
      ip(`addr add ${address}/${address.includes(":") ? "64 dev eth0 nodad" : "24 dev eth0"}`);
    }
    for (const link of ["eth0", "peer0"]) ip(`link set ${link} up`);
    for (const via of ["10.99.0.1", "fd99::1"]) ip(`route add default via ${via}`);
    return netns;
  }

  async function redirect(netns: string, changes: object = {}): Promise<void> {
    const stdin = { ...config, linkerd: { ...linkerd, ...changes } };
    expect(await plugin.call(plugin.environment(netns), stdin)).toMatchObject({ status: 0 });
  }

  async function validated(netns: string) {
    const env = {
      PATH: process.env["PATH"] ?? "",
      NODE_NAME: "node-1",
      POD_NAMESPACE: "linkerd-cni",
      POD_IPS: ADDRESSES.join(","),
      CNI_NETWORK_CONFIG: JSON.stringify({ ...config, linkerd }),
    };
    const program = [plugin.executable, "validate"];
    const { status, stdout } = await plugin.node.run("nsenter", [`--net=${netns}`, ...program], { env });
    return { status, lines: stdout.trim().split("\n") };
  }

  test("finds that both families are redirected", async () => {
    const netns = await pod();
    await redirect(netns);
    const tried = (host: string) =>
      `linkerd-cni: info: node node-1: a connection to port 64321 of ${host} is redirected to the proxy's port 4140`;
    expect(await validated(netns)).toEqual({ status: 0, lines: ["192.0.2.1", "2001:db8::1"].map(tried) });
  });

  /** The failure, and the line that reports it. */
  const failures: readonly (readonly [string, string, (netns: string) => Promise<void>])[] = [
    ["nothing is redirected", "192.0.2.1 is not redirected to the proxy's port 4140: ", async () => undefined],
    ["IPv6 is not", "2001:db8::1 is not redirected to", (netns) => redirect(netns, { ipv6: false })],
    [
      "the node has another port",
      "192.0.2.1 is not redirected to the proxy's port 4140: ECONNREFUSED.",
      (netns) => redirect(netns, { "outgoing-proxy-port": 5140 }),
    ],
  ];

  test.each(failures)("fails if %s, and reports it", async (_, message, prepare) => {
    const netns = await pod();
    await prepare(netns);
    const { status, lines } = await validated(netns);
    expect(status).toBe(1);
    expect(lines.at(-1)).toContain(message);
    expect(lines.at(-1)).toContain("Run l5d-cni check --cni-namespace linkerd-cni");
  });
});
