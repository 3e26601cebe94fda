/**
 * CRI-O's calls of CNI, in its order, in every mode and after everything that may have changed meanwhile. CRI-O itself is
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

jest.setTimeout(120_000);

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
const [IPV4, IPV6] = ["iptables", "ip6tables"];

/** Foreign changes of a mode's rules, and what CHECK must report. */
interface Tampering {
  readonly commands: readonly (readonly string[])[];
  readonly names: RegExp;
}

/** The rule that a listing of nft shows with a text: its handle is asked for when it is needed. */
const handleOf = (text: string) => `HANDLE OF ${text}`;
const native: Readonly<Record<string, Tampering>> = {
  "a removed rule": {
    commands: [["nft", "delete", "rule", "ip", "linkerd-cni", "CHAIN", "handle", handleOf("redirect to :4143")]],
    names: /4143/,
  },
  "a removed rule of IPv6": {
    commands: [["nft", "delete", "rule", "ip6", "linkerd-cni", "CHAIN", "handle", handleOf("redirect to :4143")]],
    names: /ip6.*4143/,
  },
  "a changed rule": {
    commands: [
      [
        "nft",
        "replace",
        "rule",
        "ip",
        "linkerd-cni",
        "CHAIN",
        "handle",
        handleOf("redirect to :4143"),
        "tcp",
        "dport",
        "1-65535",
        "redirect",
        "to",
        ":4144",
      ],
    ],
    names: /4144|4143/,
  },
  "an added rule": {
    commands: [
      [
        "nft",
        "insert",
        "rule",
        "ip",
        "linkerd-cni",
        "CHAIN",
        "position",
        handleOf("redirect to :4143"),
        "tcp",
        "dport",
        "81",
        "accept",
      ],
    ],
    names: /81/,
  },
  "a removed table": { commands: [["nft", "delete", "table", "ip", "linkerd-cni"]], names: /missing/ },
};

/** The same by the programs of iptables. */
function byIptables(suffix: string): Readonly<Record<string, Tampering>> {
  const iptables = (family: string | undefined, ...args: readonly string[]) => [
    `${family}${suffix}`,
    "-t",
    "nat",
    ...args,
  ];
  const redirect = (port: string) => [
    "PROXY_INIT_REDIRECT",
    "-p",
    "tcp",
    "-m",
    "comment",
    "--comment",
    "proxy-init/redirect-all-incoming-to-proxy-port",
    "-j",
    "REDIRECT",
    "--to-port",
    port,
  ];
  const ignored = (port: string) => ["PROXY_INIT_REDIRECT", "-p", "tcp", "-m", "multiport", "--dports", port];
  const ignoredComment = ["-m", "comment", "--comment", "proxy-init/ignore-port-4190", "-j", "RETURN"];
  return {
    "a removed rule": { commands: [iptables(IPV4, "-D", ...redirect("4143"))], names: /PROXY_INIT_REDIRECT.*redirect/ },
    "a removed rule of IPv6": {
      commands: [iptables(IPV6, "-D", ...redirect("4143"))],
      names: /PROXY_INIT_REDIRECT.*redirect/,
    },
    // The rules equal linkerd's, so that only their comments say what they are for.
    "a changed rule": {
      commands: [
        iptables(IPV4, "-D", ...ignored("4190"), ...ignoredComment),
        iptables(IPV4, "-I", ...ignored("4191"), "-j", "RETURN"),
      ],
      names: /PROXY_INIT_REDIRECT.*4191/,
    },
    "an added rule": {
      commands: [iptables(IPV4, "-I", "PROXY_INIT_REDIRECT", "1", "-p", "tcp", "--dport", "81", "-j", "ACCEPT")],
      names: /PROXY_INIT_REDIRECT.*81/,
    },
    "a removed jump": {
      commands: [
        iptables(
          IPV4,
          "-D",
          "PREROUTING",
          "-m",
          "comment",
          "--comment",
          "proxy-init/install-proxy-init-prerouting",
          "-j",
          "PROXY_INIT_REDIRECT",
        ),
      ],
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

  const within = (command: readonly string[]) => plugin.node.within(pod, command[0] ?? "", command.slice(1));

  /** Runs a command in the pod's namespace; of a rule that it names by its text, chain and handle are found out. */
  function tamper(command: readonly string[]): void {
    const named = command.find((word) => word.startsWith(handleOf("")))?.slice(handleOf("").length);
    if (named === undefined) return void within(command);
    const listing = within(["nft", "-a", "list", "table", command[3] ?? "", "linkerd-cni"]).split("\n");
    const at = listing.findIndex((line) => line.includes(named));
    const handle = /# handle (\d+)$/.exec(listing[at] ?? "")?.[1] ?? "";
    const chain =
      listing
        .slice(0, at)
        .reverse()
        .flatMap((line) => /chain (\S+) /.exec(line)?.[1] ?? [])[0] ?? "";
    within(command.map((word) => (word === "CHAIN" ? chain : word.startsWith(handleOf("")) ? handle : word)));
  }

  const passed: readonly [string, Readonly<Record<string, string>> | undefined][] = [
    ["annotations that are passed", injected],
    ["annotations that are not passed", undefined],
  ];

  const answering = (answer: Answer) => () => {
    api.answer = answer;
  };
  /** States of the API server when CRI-O restarts. */
  const restarts: readonly [string, () => Promise<void> | void][] = [
    ["nothing has changed", () => undefined],
    ["the pod's annotations were edited", answering(podObject(edited, ["app", "linkerd-proxy"]))],
    ["the pod's object is gone", answering(json(404, {}))],
    ["the token has expired", answering(json(401, {}))],
    ["the API server does not answer", answering(() => undefined)],
    ["the installer does not answer", () => api.lookUpNothing()],
  ];

  describe.each(Object.keys(modes))("in mode %s", (mode) => {
    describe.each(passed)("with %s", (_, annotations) => {
      it.each(restarts)("a meshed pod keeps its address if %s", async (_title, change) => {
        const sandbox = await Sandbox.start(mode, annotations);
        await change();
        api.requests.length = 0;
        await sandbox.check();
        expect(api.requests).toEqual([]);
        await sandbox.stop();
      });

      it.each(restarts)("a pod that is not meshed keeps its address if %s", async (_title, change) => {
        api.answer = unmeshed;
        const sandbox = await Sandbox.start(mode, annotations && {});
        await change();
        api.requests.length = 0;
        await sandbox.check();
        expect(api.requests).toEqual([]);
        await sandbox.stop();
      });
    });

    it("a meshed pod keeps its address if the edited annotations are passed", async () => {
      const sandbox = await Sandbox.start(mode, injected);
      await sandbox.check(edited);
    });

    it("a meshed pod keeps its address if one of its containers sets nat rules, as dockerd does", async () => {
      const sandbox = await Sandbox.start(mode, injected);
      const suffix = mode === "legacy" || mode === "plain" ? `-${mode}`.replace("-plain", "") : "-nft";
      const add = (...args: readonly string[]) => within([`iptables${suffix}`, "-t", "nat", ...args]);
      add("-N", "DOCKER");
      add("-A", "PREROUTING", "-m", "addrtype", "--dst-type", "LOCAL", "-j", "DOCKER");
      add("-A", "OUTPUT", "!", "-d", "127.0.0.0/8", "-m", "addrtype", "--dst-type", "LOCAL", "-j", "DOCKER");
      await sandbox.check();
      add("-I", "PREROUTING", "-p", "tcp", "--dport", "8443", "-j", "DNAT", "--to-destination", "172.17.0.2:443");
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
