/** Our installer beside linkerd's own: on the same node, and by the same ConfigMap. */

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { App, Chart } from "cdk8s";
import { IPTABLES_MODES, type IptablesMode, POD_ANNOTATIONS } from "../../cni/stanza";
import { LinkerdCni } from "../../constructs/linkerd-cni";
import { config } from "../../plugin/protocol-cases.testing";
import { ApiStub, json } from "../support/api-server";
import { get } from "../support/http";
import { LINKERDS_STANZA } from "../support/linkerd-stanza";
import { PluginNode } from "../support/plugin";
import { buildPrograms } from "../support/program";
import { missing, suite } from "../support/requirements";
import { until } from "../support/until";
import { SMALL_PLUGIN, TestNode } from "./installer-node";

const peer = process.env["LINKERD_CNI_INSTALL_PEER"];
const peerPlugin = process.env["LINKERD_CNI_PEER"];
const lacks = peer === undefined ? "LINKERD_CNI_INSTALL_PEER" : missing({ root: true, programs: ["unshare", "mount"] });
const pluginLacks =
  lacks ??
  (peerPlugin === undefined ? "LINKERD_CNI_PEER" : undefined) ??
  missing({ programs: ["iptables-nft", "iptables-legacy"] });

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge"},\n  {"type":"portmap"}\n]}\n';
const SINGLE = '{"cniVersion":"0.4.0","name":"mynet","type":"ptp"}\n';

const OURS = { type: "linkerd-cni", kubernetes: { kubeconfig: "__KUBECONFIG_FILEPATH__" }, ours: true };
const PORT = 19_879;

/** The peer wants its service account under /run/secrets, so it gets a /run of its own. */
const RUN = `mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io &&
cp -r "$1" /run/secrets/kubernetes.io/serviceaccount && exec "$2"`;

const MINIMAL = { name: "linkerd-cni", type: "linkerd-cni", kubernetes: { kubeconfig: "__KUBECONFIG_FILEPATH__" } };

/**
 * Lets linkerd's own installer install, and holds it.
 * @param files the configurations that it chains
 */
async function startPeer(
  node: TestNode,
  files: readonly string[],
  stanza: object = MINIMAL,
  port = 443,
): Promise<{ goOn(): void; end(signal: NodeJS.Signals): Promise<void> }> {
  const image = join(node.root, "peer");
  mkdirSync(image, { recursive: true });
  const plugin = join(image, "linkerd-cni");
  writeFileSync(plugin, SMALL_PLUGIN, { mode: 0o755 });
  if (peerPlugin !== undefined) copyFileSync(peerPlugin, plugin);
  const begin = Date.now();
  const child = spawn("unshare", ["--mount", "sh", "-c", RUN, "sh", node.accountDir, peer ?? ""], {
    stdio: "ignore",
    detached: true,
    env: {
      PATH: process.env["PATH"],
      CONTAINER_MOUNT_PREFIX: node.root,
      DEST_CNI_NET_DIR: "/net.d",
      DEST_CNI_BIN_DIR: "/bin",
      CONTAINER_CNI_BIN_DIR: image,
      KUBERNETES_SERVICE_HOST: "127.0.0.1",
      KUBERNETES_SERVICE_PORT: String(port),
      CNI_NETWORK_CONFIG: JSON.stringify(stanza),
    },
  });
  const send = (signal: string) => execFileSync("kill", [`-${signal}`, "--", `-${child.pid}`]);
  const ended = once(child, "exit");
  const end = performance.now() + 120_000;
  // It truncates files and then writes them: it is held while they are looked at.
  for (;;) {
    await sleep(200);
    send("STOP");
    await sleep(20);
    if (isCopied(node, plugin) && files.every((name) => isWritten(node, name, begin))) break;
    if (performance.now() > end) throw new Error("linkerd's installer does not install");
    send("CONT");
  }
  return {
    goOn: () => send("CONT"),
    end: async (signal) => {
      send(signal.slice(3));
      if (signal !== "SIGKILL") send("CONT");
      await ended;
    },
  };
}

/** Whether a configuration is whole, and ends in the plugin itself. */
function isChained(node: TestNode, name: string): boolean {
  try {
    return JSON.parse(node.read(name)).plugins.at(-1).type === "linkerd-cni";
  } catch {
    return false; // half-written
  }
}

/** Whether it has written a configuration: one that is chained may have been so before. */
const isWritten = (node: TestNode, name: string, since: number) =>
  isChained(node, name) && statSync(join(node.netDir, name)).mtimeMs >= since;

/** Whether the node has this plugin, all of it. */
function isCopied(node: TestNode, plugin: string): boolean {
  const installed = join(node.binDir, "linkerd-cni");
  return existsSync(installed) && readFileSync(installed).equals(readFileSync(plugin));
}

/** Lets linkerd's own installer install, and ends it as a node's crash would: it removes nothing. */
const installPeer = async (...args: Parameters<typeof startPeer>) => (await startPeer(...args)).end("SIGKILL");

suite("a node that linkerd's own installer has changed", lacks, () => {
  beforeAll(buildPrograms);

  test("is taken over: one chain, our plugin, no kubeconfig", async () => {
    const node = new TestNode({ "10-k.conflist": LIST, "20-single.conf": SINGLE, "notes.txt": "x" });
    await installPeer(node, ["10-k.conflist", "20-single.conflist"]);
    const theirs = JSON.parse(node.read("10-k.conflist"));
    expect(node.isChained("20-single.conflist")).toBe(true);

    const installer = node.start();
    await installer.says("ends in our stanza");
    expect(node.isChained("10-k.conflist")).toBe(true);
    expect(node.broken()).toEqual([]);
    expect(node.answers()).toBe(true);
    expect(node.read("20-single.conflist")).not.toContain("linkerd-cni");
    await until("no kubeconfig", () => !existsSync(join(node.netDir, "ZZZ-linkerd-cni-kubeconfig")));

    expect(await installer.stop()).toBe(0);
    expect(JSON.parse(node.read("10-k.conflist"))).toEqual({ ...theirs, plugins: theirs.plugins.slice(0, -1) });
    expect(Object.keys(node.content()).sort()).toEqual([
      "net.d/10-k.conflist",
      "net.d/20-single.conflist",
      "net.d/notes.txt",
    ]);
    node.delete();
  });
});

suite("a node where linkerd's own installer still runs, as in an update that starts the new pod first", lacks, () => {
  beforeAll(buildPrograms);

  test("is ready with either's chain, and chained at once when linkerd's takes its own out", async () => {
    const node = new TestNode({ "10-k.conflist": LIST });
    const theirs = await startPeer(node, ["10-k.conflist"]);
    theirs.goOn();
    const api = await ApiStub.start(json(404, {}));
    writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
    const installer = node.start({
      HEALTH_PORT: String(PORT),
      KUBERNETES_SERVICE_PORT: String(api.port),
      CNI_NETWORK_CONFIG: JSON.stringify(OURS),
    });
    try {
      // linkerd's puts its own back each time, and the wait for the next try grows to many seconds.
      await installer.says("(6 in a row)");
      // It writes its own while we look.
      await until("linkerd's chain", async () => {
        if (!isChained(node, "10-k.conflist") || node.read("10-k.conflist").includes('"ours"')) return false;
        return (await get(PORT, "/ready")).status === 200;
      });
      await theirs.end("SIGTERM");
      await installer.says("ends in our stanza");
      // The wait for the next try would be many times as long.
      const soon = performance.now() + 5_000;
      while (!node.read("10-k.conflist").includes('"ours"') && performance.now() < soon) await sleep(5);
      expect(node.read("10-k.conflist")).toContain('"ours"');
      expect(node.broken()).toEqual([]);
    } finally {
      await installer.stop("SIGKILL");
      api.close();
      node.delete();
    }
  });
});

/** Configuration in the chart's ConfigMap. */
function stanzaOf(iptablesMode: IptablesMode) {
  const chart = new Chart(new App(), "chart");
  new LinkerdCni(chart, "cni", { namespace: "linkerd-cni", iptablesMode });
  const objects = chart.toJson() as { kind: string; data: { cni_network_config: string } }[];
  const map = objects.find(({ kind }) => kind === "ConfigMap");
  return JSON.parse(map?.data.cni_network_config ?? "") as { linkerd: object };
}

/** Default configuration of linkerd's chart. */
const LINKERDS = {
  ...LINKERDS_STANZA,
  policy: {
    type: "k8s",
    k8s_api_root: "https://__KUBERNETES_SERVICE_HOST__:__KUBERNETES_SERVICE_PORT__",
    k8s_auth_token: "__SERVICEACCOUNT_TOKEN__",
  },
};

suite("either installer by the other's ConfigMap", pluginLacks, () => {
  let api: ApiStub;
  let plugin: PluginNode;
  let node: TestNode;

  beforeAll(async () => {
    await buildPrograms();
    const cart = { metadata: { name: "cart-1", namespace: "shop" }, spec: { containers: [{ name: "linkerd-proxy" }] } };
    const found: Record<string, object> = {
      "/api/v1/namespaces/shop/pods/cart-1": { kind: "Pod", apiVersion: "v1", ...cart },
      "/api/v1/namespaces/shop": { kind: "Namespace", apiVersion: "v1", metadata: { name: "shop" } },
    };
    api = await ApiStub.start((request, response) => {
      const object = found[request.url ?? ""];
      json(object === undefined ? 404 : 200, object ?? {})(request, response);
    });
    plugin = await PluginNode.open(api);
  });
  beforeEach(() => {
    node = new TestNode({ "10-k.conflist": LIST });
    writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
    copyFileSync(plugin.executable, join(node.imageDir, "linkerd-cni"));
  });
  afterEach(() => {
    node.delete();
  });
  afterAll(async () => {
    await plugin.close();
    api.close();
  });

  /** Runs what the node's chain ends in, for a meshed pod, as a runtime does. */
  async function rules(): Promise<string> {
    const list = JSON.parse(node.read("10-k.conflist")) as { name: string; cniVersion: string; plugins: object[] };
    const { name, cniVersion, plugins } = list;
    const last = plugins.at(-1) as { kubernetes: { kubeconfig: string } };
    // Each wrote the path that its node would have.
    const kubeconfig = existsSync(last.kubernetes.kubeconfig)
      ? last.kubernetes.kubeconfig
      : join(node.root, last.kubernetes.kubeconfig);
    const { prevResult } = config;
    const looksUp = { kubernetes: { kubeconfig }, "run-dir": node.root };
    const stdin = JSON.stringify({ ...last, name, cniVersion, prevResult, ...looksUp });
    const pod = await plugin.node.pod();
    const env = plugin.environment(pod, { PATH: process.env["PATH"] ?? "" });
    const { status, stdout, stderr } = await plugin.node.run(join(node.binDir, "linkerd-cni"), [], {
      input: stdin,
      env,
    });
    expect([status, status === 0 ? "" : stderr + stdout]).toEqual([0, ""]);
    return ["iptables-nft-save", "iptables-legacy-save"]
      .map((program) => plugin.node.within(pod, program, ["-t", "nat"]))
      .join("");
  }

  const isLinkerds = () => readFileSync(join(node.binDir, "linkerd-cni")).equals(readFileSync(peerPlugin ?? ""));

  test.each(IPTABLES_MODES)("linkerd's, by ours with mode %s, and then ours again", async (mode) => {
    const stanza = stanzaOf(mode);
    await installPeer(node, ["10-k.conflist"], stanza, api.port);
    expect(isLinkerds()).toBe(true);
    expect(await rules()).toContain("proxy-init/redirect-all-outgoing-to-proxy-port");
    const environment = { KUBERNETES_SERVICE_PORT: String(api.port), CNI_NETWORK_CONFIG: JSON.stringify(stanza) };
    const installer = node.start(environment);
    await installer.says("ends in our stanza");
    expect(isLinkerds()).toBe(false);
    await rules();
    expect(await installer.stop()).toBe(0);
  });

  test("ours, by linkerd's, after linkerd's, and then linkerd's again", async () => {
    await installPeer(node, ["10-k.conflist"], LINKERDS, api.port);
    const theirs = await rules();
    const environment = { KUBERNETES_SERVICE_PORT: String(api.port), CNI_NETWORK_CONFIG: JSON.stringify(LINKERDS) };
    const installer = node.start({ ...environment, UNINSTALL_ON_STOP: "never" });
    await installer.says("ends in our stanza");
    const lines = (text: string) => text.split("\n").filter((line) => line.startsWith("-A"));
    expect(isLinkerds()).toBe(false);
    expect(lines(await rules())).toEqual(lines(theirs));
    expect(await installer.stop()).toBe(0);
    await installPeer(node, ["10-k.conflist"], LINKERDS, api.port);
    expect(isLinkerds()).toBe(true);
    expect(lines(await rules())).toEqual(lines(theirs));
  });

  test.each(["edit", "dropin"])(
    "linkerd's, started beside ours with chaining %s, and left alone, as after kubectl rollout undo: any pod is looked up",
    async (chaining) => {
      const reader = node.readAsRuntime();
      const environment = { KUBERNETES_SERVICE_PORT: String(api.port), CNI_NETWORK_CONFIG: JSON.stringify(LINKERDS) };
      const installer = node.start({ ...environment, CHAINING: chaining, UNINSTALL_ON_STOP: "never" });
      let linkerds: Awaited<ReturnType<typeof startPeer>> | undefined;
      try {
        await installer.says("pods that start from now on are chained");
        linkerds = await startPeer(node, ["10-k.conflist"], LINKERDS, api.port);
        linkerds.goOn();
        await installer.says("was replaced by another plugin");
        expect(await installer.stop()).toBe(0);
        await until("linkerd's chain", async () => isChained(node, "10-k.conflist"));
        expect(isLinkerds()).toBe(true);
        // It has no annotations.
        expect(await rules()).toContain("PROXY_INIT_REDIRECT");
      } finally {
        reader.close();
        await installer.stop("SIGKILL");
        await linkerds?.end("SIGKILL");
      }
    },
  );

  /** Calls what a runtime calls for a meshed pod, in their order. @returns the types, each with what is wrong */
  async function calls(
    verb: "ADD" | "DEL",
    pod: string,
    list: Chain,
    annotations?: object,
  ): Promise<readonly string[]> {
    const { name, cniVersion, plugins } = list;
    const ours = plugins.filter(({ type }) => type.startsWith("linkerd-cni"));
    const outcomes: string[] = [];
    for (const stanza of verb === "ADD" ? ours : ours.toReversed()) {
      const { status, stdout } = await plugin.node.run(join(node.binDir, stanza.type), [], {
        input: JSON.stringify({
          ...stanza,
          ...{ name, cniVersion, prevResult: config.prevResult, "run-dir": node.root },
          ...(annotations === undefined ? {} : { runtimeConfig: { [POD_ANNOTATIONS]: annotations } }),
        }),
        env: plugin.environment(pod, { CNI_COMMAND: verb, CNI_PATH: node.binDir, PATH: process.env["PATH"] ?? "" }),
      });
      outcomes.push(`${stanza.type}${status === 0 ? "" : ` ${status} ${stdout}`}`);
    }
    return outcomes;
  }

  interface Chain {
    readonly name: string;
    readonly cniVersion: string;
    readonly plugins: readonly { readonly type: string }[];
  }

  /** What a runtime loads: the list and its drop-ins. linkerd's installer writes the path that its node would have. */
  function load(): Chain {
    const list = JSON.parse(node.read("10-k.conflist"));
    const dropin = join("k", "99-linkerd-cni.conf");
    const below = existsSync(join(node.netDir, dropin)) ? [JSON.parse(node.read(dropin))] : [];
    const plugins = [...list.plugins, ...below].map((each: { kubernetes?: object }) =>
      each.kubernetes === undefined
        ? each
        : { ...each, kubernetes: { kubeconfig: join(node.netDir, "ZZZ-linkerd-cni-kubeconfig") } },
    );
    return { ...list, plugins };
  }

  const isRedirected = (pod: string) => ({
    byLinkerds: ["iptables-nft-save", "iptables-legacy-save"].some((program) =>
      plugin.node.within(pod, program, ["-t", "nat"]).includes("proxy-init/redirect-all-outgoing-to-proxy-port"),
    ),
    byOurs: plugin.node.within(pod, "nft", ["list", "tables"]).includes("linkerd-cni"),
  });

  /** Container runtimes bind a pod's namespace to a file. */
  async function sandbox(): Promise<string> {
    const path = join(node.root, `netns-${performance.now()}`);
    writeFileSync(path, "");
    expect((await plugin.node.run("mount", ["--bind", await plugin.node.pod(), path])).status).toBe(0);
    return path;
  }
  test.each([
    ["is killed", "SIGKILL"],
    ["asks an API server that is silent", "SIGTERM"],
  ] as const)("a rollback right after the installation, while our pod %s", async (_, signal) => {
    const reader = node.readAsRuntime();
    const silent = createServer(() => undefined)
      .listen(0, "127.0.0.1")
      .unref();
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const installer = node.start({
      KUBERNETES_SERVICE_PORT: String(signal === "SIGTERM" ? port : api.port),
      CNI_NETWORK_CONFIG: JSON.stringify(stanzaOf("auto")),
      CHAINING: "dropin",
      UNINSTALL_ON_STOP: "auto",
      POD_NAMESPACE: "linkerd-cni",
      POD_NAME: "linkerd-cni-x7k2p",
    });
    await installer.says("holds our stanza");
    const begun = { pod: await sandbox(), chain: load() };
    reader.close();
    const stopped = installer.stop(signal);
    if (signal === "SIGKILL") await stopped;
    const linkerds = await startPeer(node, ["10-k.conflist"], LINKERDS, api.port);
    linkerds.goOn();
    expect(await stopped).toBe(signal === "SIGKILL" ? signal : 0);
    expect(isLinkerds()).toBe(true);

    // The installer that looks pods up has ended.
    const injected = { "linkerd.io/created-by": "linkerd/proxy-injector x", "linkerd.io/proxy-version": "x" };
    expect(await calls("ADD", begun.pod, begun.chain, injected)).toEqual(["linkerd-cni-redirect"]);
    expect(isRedirected(begun.pod)).toEqual({ byLinkerds: false, byOurs: true });
    await sleep(11_000);
    const pod = await sandbox();
    const chain = load();
    const both = ["linkerd-cni", "linkerd-cni-redirect"];
    expect(await calls("ADD", pod, chain)).toEqual(both);
    expect(isRedirected(pod)).toEqual({ byLinkerds: true, byOurs: false });

    await linkerds.end("SIGTERM");
    expect([existsSync(join(node.binDir, "linkerd-cni")), load().plugins.map(({ type }) => type)]).toEqual([
      false,
      ["bridge", "portmap", "linkerd-cni-redirect"],
    ]);
    const late = await sandbox();
    expect(await calls("ADD", late, load())).toEqual(["linkerd-cni-redirect"]);
    expect(isRedirected(late)).toEqual({ byLinkerds: false, byOurs: false });
    expect(await calls("DEL", late, load())).toEqual(["linkerd-cni-redirect"]);
    expect(await calls("DEL", begun.pod, begun.chain)).toEqual(["linkerd-cni-redirect"]);

    const again = node.start({
      KUBERNETES_SERVICE_PORT: String(api.port),
      CNI_NETWORK_CONFIG: JSON.stringify(stanzaOf("auto")),
      CHAINING: "edit",
    });
    await again.says("ends in our stanza");
    expect(await again.stop()).toBe(0);
    expect(Object.keys(node.content()).filter((path) => /linkerd/.test(path))).toEqual([]);
  });
});
