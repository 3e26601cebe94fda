/**
 * CRI-O's calls of CNI, in its order, in every mode, with whatever may have changed meanwhile. CRI-O itself is
 * in runtimes.test.ts, if it is there. It calls CHECK right after ADD, and at its own restart for each sandbox, with the
 * configuration, the annotations and the result that it cached at the ADD; where CHECK fails it lets go of the pod's
 * address. DEL gets what was cached, too. (ocicni: SetUpPodWithContext, GetPodNetworkStatusWithContext,
 * TearDownPodWithContext)
 */
import { dirname } from "node:path";
import { type Answer, ApiStub, json } from "../support/api-server";
import { type Attachment, ChainError, CniRunner, type NetworkList } from "../support/cni-runner";
import { hasProgram, namespacesMissing } from "../support/netns";
import { PluginNode } from "../support/plugin";
import { missing as lacks, suite } from "../support/requirements";

const CNI_PLUGINS = "/usr/lib/cni";
const missing =
  namespacesMissing() ??
  lacks({ programs: ["nft", "iptables-nft", "iptables-legacy"] }) ??
  (hasProgram(`${CNI_PLUGINS}/loopback`) ? undefined : "containernetworking-plugins");

const injected = {
  "linkerd.io/created-by": "linkerd/proxy-injector edge-26.7.1",
  "linkerd.io/proxy-version": "edge-26.7.1",
};
const edited = { ...injected, "config.linkerd.io/skip-inbound-ports": "1234", "config.linkerd.io/proxy-uid": "77" };

function podObject(annotations: Readonly<Record<string, string>>, containers: readonly string[]): Answer {
  return json(200, {
    kind: "Pod",
    apiVersion: "v1",
    metadata: { name: "cart-1", namespace: "shop", annotations },
    spec: { containers: containers.map((name) => ({ name })) },
  });
}
const meshed = podObject(injected, ["app", "linkerd-proxy"]);
const unmeshed = podObject({}, ["app"]);

const ANNOTATIONS = "io.kubernetes.cri.pod-annotations";

/** Foreign changes of a mode's rules, and what CHECK must report. */
interface Tampering {
  readonly commands: readonly string[];
  readonly names: RegExp;
}

/** Chain and handle of this rule take the place of CHAIN and HANDLE in commands of nft. */
const RULE = "redirect to :4143";
const native: Readonly<Record<string, Tampering>> = {
  "a removed rule": {
    commands: ["nft delete rule ip linkerd-cni CHAIN handle HANDLE"],
    names: / ip .*rule \d+ of \d+ is missing/,
  },
  "a removed rule of IPv6": {
    commands: ["nft delete rule ip6 linkerd-cni CHAIN handle HANDLE"],
    names: / ip6 .*rule \d+ of \d+ is missing/,
  },
  "a changed rule": {
    commands: ["nft replace rule ip linkerd-cni CHAIN handle HANDLE tcp dport 1-65535 redirect to :4144"],
    names: /4144|4143/,
  },
  "an added rule": {
    commands: ["nft insert rule ip linkerd-cni CHAIN position HANDLE tcp dport 81 accept"],
    names: /81/,
  },
  "a removed table": { commands: ["nft delete table ip linkerd-cni"], names: /missing/ },
};

/** The same by the programs of iptables. */
function byIptables(suffix: string): Readonly<Record<string, Tampering>> {
  const [ipv4, ipv6] = [`iptables${suffix} -t nat`, `ip6tables${suffix} -t nat`];
  const comment = (text: string) => `-m comment --comment proxy-init/${text}`;
  const redirect = `PROXY_INIT_REDIRECT -p tcp ${comment("redirect-all-incoming-to-proxy-port")} -j REDIRECT --to-port 4143`;
  const ignored = "PROXY_INIT_REDIRECT -p tcp -m multiport --dports";
  return {
    "a removed rule": { commands: [`${ipv4} -D ${redirect}`], names: /PROXY_INIT_REDIRECT.*redirect/ },
    "a removed rule of IPv6": { commands: [`${ipv6} -D ${redirect}`], names: /PROXY_INIT_REDIRECT.*redirect/ },
    // The rules equal linkerd's, so that only their comments say what they are for.
    "a changed rule": {
      commands: [
        `${ipv4} -D ${ignored} 4190 ${comment("ignore-port-4190")} -j RETURN`,
        `${ipv4} -I ${ignored} 4191 -j RETURN`,
      ],
      names: /PROXY_INIT_REDIRECT.*4191/,
    },
    "an added rule": {
      commands: [`${ipv4} -I PROXY_INIT_REDIRECT 1 -p tcp --dport 81 -j ACCEPT`],
      names: /PROXY_INIT_REDIRECT.*81/,
    },
    "a removed jump": {
      commands: [`${ipv4} -D PREROUTING ${comment("install-proxy-init-prerouting")} -j PROXY_INIT_REDIRECT`],
      names: /PREROUTING/,
    },
  };
}

const modes: Readonly<Record<string, Readonly<Record<string, Tampering>>>> = {
  auto: native,
  native,
  nft: byIptables("-nft"),
  legacy: byIptables("-legacy"),
  plain: byIptables(""),
};

suite("CRI-O's calls", missing, () => {
  let api: ApiStub;
  let plugin: PluginNode;
  let pod: string;

  beforeAll(async () => {
    api = await ApiStub.start(meshed);
    plugin = await PluginNode.open(api);
  });
  beforeEach(async () => {
    api.answer = meshed;
    pod = await plugin.node.pod();
  });
  afterEach(async () => {
    plugin.node.release(pod);
    await api.lookUpNothing();
    await api.lookUp();
  });
  afterAll(async () => {
    await plugin.close();
    api.close();
  });

  const network = (mode: string): NetworkList => ({
    cniVersion: "1.0.0",
    name: "pods",
    plugins: [
      { type: "loopback" },
      {
        type: "linkerd-cni",
        "run-dir": plugin.runDir,
        linkerd: { ipv6: true, "iptables-mode": mode, "inbound-ports-to-ignore": ["4190"] },
        capabilities: { [ANNOTATIONS]: true },
      },
    ],
  });

  /** A sandbox in CRI-O's cache: the input of ADD and the result. */
  class Sandbox {
    private constructor(
      private readonly runner: CniRunner,
      private readonly cached: Attachment,
      private readonly result: unknown,
    ) {}

    /** @param annotations undefined if CRI-O is older than 1.29 and does not pass them */
    static async start(mode: string, annotations: Readonly<Record<string, string>> | undefined): Promise<Sandbox> {
      const runner = new CniRunner(network(mode), [dirname(plugin.executable), CNI_PLUGINS]);
      const attachment = {
        containerId: "c1",
        netns: pod,
        ifname: "lo",
        args: {
          K8S_POD_NAMESPACE: "shop",
          K8S_POD_NAME: "cart-1",
          K8S_POD_INFRA_CONTAINER_ID: "c1",
          K8S_POD_UID: "u1",
        },
        capabilities: annotations === undefined ? {} : { [ANNOTATIONS]: annotations },
      };
      const answers = await runner.add(attachment);
      const sandbox = new Sandbox(runner, attachment, JSON.parse(answers.at(-1)?.stdout ?? ""));
      await sandbox.check();
      return sandbox;
    }

    check = (annotations?: Readonly<Record<string, string>>) =>
      this.runner.check(
        annotations === undefined ? this.cached : { ...this.cached, capabilities: { [ANNOTATIONS]: annotations } },
        this.result,
      );
    stop = () => this.runner.del(this.cached, this.result);
  }

  const within = (command: string) => {
    const [program = "", ...args] = command.split(" ");
    return plugin.node.within(pod, program, args);
  };

  /** Runs a command in the pod's namespace. */
  function tamper(command: string): void {
    const table = /^nft .* (ip6?) linkerd-cni CHAIN/.exec(command)?.[1];
    if (table === undefined) return void within(command);
    const [before = "", after = ""] = within(`nft -a list table ${table} linkerd-cni`).split(RULE);
    const chain = [...before.matchAll(/chain (\S+) /g)].at(-1)?.[1] ?? "";
    const handle = /# handle (\d+)/.exec(after)?.[1] ?? "";
    within(command.replace("CHAIN", chain).replace("HANDLE", handle));
  }

  const passed: readonly [string, Readonly<Record<string, string>> | undefined][] = [
    ["annotations that are passed", injected],
    ["annotations that are not passed", undefined],
  ];

  describe.each(Object.keys(modes))("in mode %s", (mode) => {
    it.each(passed)(
      "pods keep their addresses with %s, whatever the API server and the installer say",
      async (...row) => {
        const [, annotations] = row;
        const sandbox = await Sandbox.start(mode, annotations);
        api.answer = json(404, {});
        await api.lookUpNothing();
        api.requests.length = 0;
        await sandbox.check();
        expect(api.requests).toEqual([]);
        await sandbox.stop();
      },
    );

    it.each(passed)("so do pods that are not meshed, with %s", async (_, annotations) => {
      api.answer = unmeshed;
      const sandbox = await Sandbox.start(mode, annotations && {});
      await sandbox.check();
      await sandbox.stop();
    });

    it("a meshed pod keeps its address if the edited annotations are passed", async () => {
      const sandbox = await Sandbox.start(mode, injected);
      await sandbox.check(edited);
    });

    it("a meshed pod keeps its address if one of its containers sets nat rules, as dockerd does", async () => {
      const sandbox = await Sandbox.start(mode, injected);
      const suffix = mode === "legacy" || mode === "plain" ? `-${mode}`.replace("-plain", "") : "-nft";
      const iptables = (args: string) => within(`iptables${suffix} -t nat ${args}`);
      iptables("-N DOCKER");
      iptables("-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER");
      iptables("-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER");
      await sandbox.check();
      iptables("-I PREROUTING -p tcp --dport 8443 -j DNAT --to-destination 172.17.0.2:443");
      await sandbox.check();
    });

    it.each(Object.entries(modes[mode] ?? {}))(
      "CHECK fails and names %s; DEL succeeds",
      async (_, { commands, names }) => {
        const sandbox = await Sandbox.start(mode, injected);
        for (const command of commands) tamper(command);
        const failure = await sandbox.check().then(
          () => undefined,
          (error: unknown) => error,
        );
        expect(failure).toBeInstanceOf(ChainError);
        const { answers } = failure as ChainError;
        const document = JSON.parse(answers.at(-1)?.stdout ?? "");
        expect(document).toMatchObject({ code: 100, msg: expect.stringMatching(names) });
        await sandbox.stop();
        await sandbox.stop();
      },
    );
  });
});
