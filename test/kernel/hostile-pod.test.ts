/** The built plugin if a container of the pod has NET_ADMIN, and fills or changes its network namespace. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { config, prevResult } from "../../plugin/protocol-cases.testing";
import { ApiStub, json } from "../support/api-server";
import { hasProgram, namespacesMissing, type Ran } from "../support/netns";
import { PluginNode } from "../support/plugin";
import { suite } from "../support/requirements";

const missing =
  namespacesMissing() ??
  (process.getuid?.() === 0 ? undefined : "root") ??
  (hasProgram("nft") ? undefined : "nft") ??
  (hasProgram("iptables-legacy") && hasProgram("iptables-nft") ? undefined : "iptables");

const annotations = { "linkerd.io/proxy-version": "x", "linkerd.io/created-by": "linkerd/proxy-injector x" };
const linkerd = { ipv6: true, "inbound-ports-to-ignore": ["4190", "4191"] };
const alone = {
  ...config,
  "pod-lookup": "annotations",
  runtimeConfig: { "io.kubernetes.cri.pod-annotations": annotations },
  linkerd,
};

const RULES = 20_000;
/** KiB of address space: enough for a call, and not for a list of that many rules. */
const SPACE = "32768";

suite("a hostile pod", missing, () => {
  let api: ApiStub;
  let plugin: PluginNode;
  let pod: string;

  beforeAll(async () => {
    api = await ApiStub.start(json(500, {}));
    plugin = await PluginNode.open(api);
  });
  beforeEach(async () => {
    pod = await plugin.node.pod();
  });
  afterAll(async () => {
    await plugin.close();
    api.close();
  });

  /** Calls the plugin, with little memory by default. */
  function call(verb: "ADD" | "CHECK", stdin: object = alone, space = SPACE): Promise<Ran> {
    const env = { PATH: process.env["PATH"] ?? "", ...plugin.environment(pod, { CNI_COMMAND: verb }) };
    const script = ["-c", `ulimit -v ${space}; exec "$0"`, plugin.executable];
    return plugin.node.run("sh", script, { env, input: JSON.stringify(stdin) });
  }

  async function add(stdin: object = alone): Promise<void> {
    const { status, stdout } = await call("ADD", stdin, "unlimited");
    expect([status, JSON.parse(stdout)]).toEqual([0, prevResult]);
  }

  const nft = (commands: readonly string[]) => plugin.node.within(pod, "nft", ["-f", "-"], commands.join("\n"));
  const many = (command: string) => new Array<string>(RULES).fill(command);
  const refused = (message: RegExp) => ({ code: 100, msg: expect.stringMatching(message) });

  it("has any number of rules of its own, which cost a call nothing", async () => {
    nft(["add table ip own", "add chain ip own busy", ...many("add rule ip own busy tcp dport 80 counter accept")]);
    await add();
    await add();
    expect(await call("CHECK")).toMatchObject({ status: 0, stdout: "" });
  });

  it("fills a chain of ours, and fails its own CHECK alone", async () => {
    await add();
    nft(many("add rule ip linkerd-cni outbound tcp dport 80 counter accept"));
    const { stdout } = await call("CHECK");
    expect(JSON.parse(stdout)).toMatchObject(refused(/table ip linkerd-cni, chain outbound: has more than \d+ bytes/));
  });

  it("has our rule look up a set of any size, and fails its own CHECK alone", async () => {
    await add();
    const elements = Array.from({ length: 65_536 }, (_, at) => `10.${at >> 8}.${at & 0xff}.1 . 10.0.0.1 . ${at}`);
    nft([
      "add set ip linkerd-cni big { type ipv4_addr . ipv4_addr . inet_service; }",
      `add element ip linkerd-cni big { ${elements.join(", ")} }`,
      "insert rule ip linkerd-cni inbound ip saddr . ip daddr . tcp dport @big accept",
    ]);
    const { stdout } = await call("CHECK");
    expect(JSON.parse(stdout)).toMatchObject(refused(/table ip linkerd-cni, chain inbound: /));
  });

  it("switches our table off, which CHECK notices", async () => {
    await add();
    nft(["add table ip6 linkerd-cni { flags dormant; }"]);
    const { stdout } = await call("CHECK");
    expect(JSON.parse(stdout)).toMatchObject(refused(/table ip6 linkerd-cni is dormant/));
  });

  it("changes its own tables all the time, and CHECK succeeds", async () => {
    await add();
    const change = "add table ip own; add chain ip own busy; add rule ip own busy counter; delete table ip own\n";
    const program = spawn("nsenter", [`--net=${pod}`, "nft", "-i"], { stdio: ["pipe", "ignore", "ignore"] });
    const ended = once(program, "exit");
    // It is killed while it is written to.
    program.stdin.on("error", () => undefined);
    const keepChanging = (): void => {
      while (program.stdin.write(change));
    };
    program.stdin.on("drain", keepChanging);
    keepChanging();
    const outcomes: Ran[] = [];
    for (let time = 0; time < 60; time++) outcomes.push(await call("CHECK"));
    expect(program.exitCode).toBeNull();
    program.kill("SIGKILL");
    await ended;
    expect(outcomes.filter(({ status }) => status !== 0)).toEqual([]);
  });

  it.each(["nft", "legacy"])(
    "in mode %s, fills the table that iptables prints, and fails its own calls alone",
    async (mode) => {
      const stanza = { ...alone, linkerd: { ...linkerd, "iptables-mode": mode } };
      await add(stanza);
      const rules = new Array<string>(RULES).fill(`-A OUTPUT -m comment --comment ${"a".repeat(250)} -j ACCEPT`);
      plugin.node.within(pod, `iptables-${mode}-restore`, ["--noflush"], `*nat\n${rules.join("\n")}\nCOMMIT\n`);
      for (const verb of ["ADD", "CHECK"] as const) {
        const { stdout } = await call(verb, stanza, "unlimited");
        expect(JSON.parse(stdout)).toMatchObject({
          code: 101,
          msg: expect.stringMatching(/-save -t nat failed with a signal: it prints more than 4 MiB/),
        });
      }
    },
  );
});
