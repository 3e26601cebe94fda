/** Our rules beside those of linkerd's own plugin, as iptables-save prints them. Its executable: LINKERD_CNI_PEER. */
import { config } from "../../plugin/protocol-cases.testing";
import { type Answer, ApiStub, json } from "../support/api-server";
import { hasProgram, namespacesMissing } from "../support/netns";
import { PluginNode } from "../support/plugin";
import { suite } from "../support/requirements";

const peer = process.env["LINKERD_CNI_PEER"];
const missing =
  namespacesMissing() ??
  (peer === undefined ? "LINKERD_CNI_PEER to name linkerd's plugin" : undefined) ??
  (hasProgram("iptables-legacy") && hasProgram("iptables-nft") ? undefined : "iptables");

interface Case {
  readonly linkerd?: object;
  readonly pod?: Record<string, string>;
  readonly namespace?: Record<string, string>;
  readonly labels?: Record<string, string>;
  readonly twice?: boolean;
}

const usual = { "inbound-ports-to-ignore": ["4191", "4190"] };
const key = (name: string) => `config.linkerd.io/${name}`;
const many = Array.from({ length: 40 }, (_, index) => `${1000 + index}`);

const cases: Record<string, Case> = {
  "the defaults": { linkerd: usual },
  "other ports and ids": {
    linkerd: { "incoming-proxy-port": 1, "outgoing-proxy-port": 65535, "proxy-uid": 0, "proxy-gid": 7 },
  },
  "a group below one": { linkerd: { ...usual, "proxy-gid": 0 } },
  "chosen ports": { linkerd: { ...usual, "ports-to-redirect": [80, 443] } },
  "ranges and more than one rule holds": {
    linkerd: { "inbound-ports-to-ignore": [...many, "5-7", "8-8"], "outbound-ports-to-ignore": ["1-2", ...many, "9"] },
  },
  duplicates: { linkerd: { "inbound-ports-to-ignore": ["1", "1", "2-3", "2-3"] } },
  subnets: { linkerd: { ...usual, "subnets-to-ignore": ["10.0.0.0/8", "10.5.6.7/15", "192.168.1.1/32"] } },
  "subnets that are read leniently": {
    linkerd: { ...usual, "subnets-to-ignore": ["0.0.0.0/0", " 10.0.0.0/8 ", "10.0.0.1/32"] },
  },
  "a second time": { linkerd: usual, twice: true },
  "annotations of the pod": {
    linkerd: { ...usual, "outbound-ports-to-ignore": ["1"] },
    pod: {
      [key("skip-inbound-ports")]: "25,100-200",
      [key("skip-outbound-ports")]: "3306",
      [key("proxy-uid")]: "5000",
      [key("proxy-gid")]: "5001",
      [key("skip-subnets")]: "10.9.0.0/16",
    },
  },
  "annotations of the namespace": {
    linkerd: usual,
    namespace: {
      [key("skip-inbound-ports")]: "26",
      [key("skip-outbound-ports")]: "5432,1-9",
      [key("proxy-uid")]: "77",
    },
  },
  "annotations of both": {
    linkerd: usual,
    pod: { [key("skip-outbound-ports")]: "1" },
    namespace: { [key("skip-outbound-ports")]: "2", [key("skip-inbound-ports")]: "3" },
  },
  "empty items": {
    linkerd: { "inbound-ports-to-ignore": ["4191", ""], "outbound-ports-to-ignore": ["", "1"] },
    pod: { [key("skip-inbound-ports")]: "80,443,", [key("skip-outbound-ports")]: "80,,443" },
  },
  "empty items of the namespace": { linkerd: usual, namespace: { [key("skip-outbound-ports")]: ",80,,443," } },
  "port 0": {
    linkerd: { ...usual, "ports-to-redirect": [0, 80], "outbound-ports-to-ignore": ["0", "0-0"] },
    pod: { [key("skip-inbound-ports")]: "0,0-1024" },
  },
  "signs and leading zeros": {
    linkerd: usual,
    pod: { [key("skip-outbound-ports")]: "+80,00443,01-+2", [key("proxy-uid")]: "+5", [key("proxy-gid")]: "007" },
  },
  "ids below one": { linkerd: usual, pod: { [key("proxy-uid")]: "-1", [key("proxy-gid")]: "-9999999999999" } },
  "ids below one of the namespace": {
    linkerd: { ...usual, "proxy-gid": 7 },
    namespace: { [key("proxy-uid")]: "0", [key("proxy-gid")]: "0" },
  },
  "ids below one in the configuration": { linkerd: { ...usual, "proxy-uid": -1, "proxy-gid": -5 } },
  "a hundred ports": {
    pod: { [key("skip-inbound-ports")]: [...many, ...many, "1", "2", "3-4", "4-9", ...many].join() },
  },
  "the control plane": { linkerd: usual, labels: { "linkerd.io/control-plane-component": "destination" } },
};

function answerFor({ pod = {}, namespace = {}, labels = {} }: Case): Answer {
  const objects: Record<string, object> = {
    "/api/v1/namespaces/shop/pods/cart-1": {
      kind: "Pod",
      apiVersion: "v1",
      metadata: { name: "cart-1", namespace: "shop", annotations: pod, labels },
      spec: { containers: [{ name: "linkerd-proxy" }] },
    },
    "/api/v1/namespaces/shop": {
      kind: "Namespace",
      apiVersion: "v1",
      metadata: { name: "shop", annotations: namespace },
    },
    "/api/v1/namespaces/default/services/kubernetes": {
      kind: "Service",
      apiVersion: "v1",
      metadata: { name: "kubernetes", namespace: "default" },
      spec: { ports: [{ port: 443, targetPort: 6443 }] },
    },
  };
  return (request, response) => {
    const found = objects[(request.url ?? "").split("?")[0] ?? ""];
    json(found === undefined ? 404 : 200, found ?? {})(request, response);
  };
}

suite("rules equal linkerd's", missing, () => {
  let api: ApiStub;
  let plugin: PluginNode;

  beforeAll(async () => {
    api = await ApiStub.start(json(404, {}));
    plugin = await PluginNode.open(api);
  });
  afterAll(async () => {
    await plugin.close();
    api.close();
  });

  /** Where linkerd's plugin and ours look pods up. */
  const looksUp = () => ({ kubernetes: { kubeconfig: plugin.kubeconfig }, "run-dir": plugin.runDir });

  /** Rules that each of the host's iptables finds in the namespace, without counters and dates. */
  function saved(pod: string): string[] {
    const programs = ["iptables-nft-save", "ip6tables-nft-save", "iptables-legacy-save", "ip6tables-legacy-save"];
    return programs.flatMap((program) => {
      const lines = plugin.node.within(pod, program, ["-t", "nat"]).split("\n");
      return [
        program,
        ...lines.filter((line) => line !== "" && !line.startsWith("#")).map((line) => line.replace(/ \[.*/, "")),
      ];
    });
  }

  /** The rules that an executable sets; CHECK has to hold for each, for a pod may be older than the plugin. */
  async function rulesBy(executable: string, stdin: string, times: number): Promise<string[]> {
    const pod = await plugin.node.pod();
    const env = plugin.environment(pod, { PATH: process.env["PATH"] ?? "" });
    for (let time = 0; time < times; time++) {
      const { status, stderr, stdout } = await plugin.node.run(executable, [], { input: stdin, env });
      expect([status, status === 0 ? "" : stderr + stdout]).toEqual([0, ""]);
    }
    const previous = { ...JSON.parse(stdin), prevResult: { cniVersion: config.cniVersion } };
    const checked = await plugin.call({ ...env, CNI_COMMAND: "CHECK" }, previous);
    expect([checked.status, checked.document]).toEqual([0, undefined]);
    return saved(pod);
  }

  const modes = ["nft", "legacy", "plain"];
  const table = modes.flatMap((mode) =>
    [false, true].flatMap((ipv6) => Object.keys(cases).map((name) => ({ mode, ipv6, name }))),
  );

  it.each(table.filter(({ ipv6, name }) => !(ipv6 && cases[name]?.linkerd !== undefined && name.includes("subnets"))))(
    "in mode $mode with ipv6 $ipv6: $name",
    async ({ mode, ipv6, name }) => {
      const one = cases[name] ?? {};
      const v6 = ipv6 && one.pod?.[key("skip-subnets")] === undefined;
      api.answer = answerFor(one);
      const linkerd = { ...one.linkerd, "iptables-mode": mode, ipv6: v6 };
      const full = { "incoming-proxy-port": 4143, "outgoing-proxy-port": 4140, "proxy-uid": 2102, ...linkerd };
      const stdin = JSON.stringify({ ...config, ...looksUp(), linkerd: full });
      const times = one.twice === true ? 2 : 1;
      const ours = await rulesBy(plugin.executable, stdin, times);
      expect(ours).toEqual(await rulesBy(peer ?? "", stdin, times));
      expect(ours.join("\n")).toContain("PROXY_INIT_OUTPUT -p tcp -m comment");
    },
  );

  describe("differ if linkerd's are wrong", () => {
    const input = (pod: Record<string, string>) => {
      api.answer = answerFor({ pod });
      const linkerd = {
        "incoming-proxy-port": 4143,
        "outgoing-proxy-port": 4140,
        "proxy-uid": 2102,
        "iptables-mode": "nft",
      };
      return JSON.stringify({ ...config, ...looksUp(), linkerd });
    };

    it("all of IPv6 is not all of IPv4", async () => {
      const stdin = input({ [key("skip-subnets")]: "::/0" });
      const all = '-A PROXY_INIT_REDIRECT -m comment --comment "proxy-init/ignore-subnet-::/0" -j RETURN';
      expect(await rulesBy(peer ?? "", stdin, 1)).toContain(all);
      expect(await rulesBy(plugin.executable, stdin, 1)).not.toContain(all);
    });

    it.each([
      ["fd00::/8", 0],
      ["::ffff:10.0.0.0/104", 1],
    ])("of %s linkerd's fail", async (network, ours) => {
      const stdin = input({ [key("skip-subnets")]: network });
      const statuses = [peer ?? "", plugin.executable].map(async (executable) => {
        const env = plugin.environment(await plugin.node.pod(), { PATH: process.env["PATH"] ?? "" });
        return (await plugin.node.run(executable, [], { input: stdin, env })).status;
      });
      expect(await Promise.all(statuses)).toEqual([1, ours]);
    });
  });
});
