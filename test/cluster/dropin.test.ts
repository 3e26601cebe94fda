/** The plugin as a drop-in beside the owner's list, on a node whose runtime reads drop-ins, while the list changes. */
import { existsSync } from "node:fs";
import { open, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { rounds } from "../support/rounds";
import { startDaemon } from "./cluster";
import { powerOff, powerOn } from "./faults";
import { CONFIGURATION, configure, kubelet } from "./node";
import { onDisk } from "./paths";
import { INJECTED, pod } from "./pods";
import { PodStream } from "./stream";
import { clusterSuite, NET_DIR } from "./suite";

const CHAIN = ["bridge", "portmap", "linkerd-cni"];
const FOLDER = join(onDisk(NET_DIR), "cluster");
const DROPIN = join(FOLDER, "99-linkerd-cni.conf");
/** A fight lasts so long at least, and until so many pods have started. */
const FIGHT_MS = rounds(4_000, 20_000);
const PODS = rounds(16, 100);
/** Pods that start after a boot and before the installer does. */
const EARLY = rounds(4, 20);

/** The owner's file: its bytes, and the file itself. */
async function owners(): Promise<object> {
  return { text: await readFile(CONFIGURATION, "utf8"), inode: (await stat(CONFIGURATION)).ino };
}

/** Keeps rewriting the owner's file in place with the same content, until told to stop. */
function rewrite(text: string): () => Promise<number> {
  let over = false;
  const writing = (async () => {
    let times = 0;
    for (; !over; times += 1) {
      const file = await open(CONFIGURATION, "r+");
      await file.write(text);
      await file.close();
      await sleep(500);
    }
    return times;
  })();
  return () => {
    over = true;
    return writing;
  };
}

clusterSuite(
  "a drop-in beside the node's configuration, on containerd 2.2",
  (cluster) => {
    let owner: object;
    let text: string;

    beforeAll(async () => {
      text = await readFile(CONFIGURATION, "utf8");
      owner = await owners();
      await cluster.install();
      await cluster.kubectl.start(pod("client"));
    });

    /** Starts meshed pods while something is done, and until enough have. */
    async function whilePodsStart(work: () => Promise<unknown>): Promise<number> {
      const stream = new PodStream(cluster.kubectl, "client", { validator: true });
      await work();
      while (stream.started < PODS) {
        await stream.check();
        await sleep(100);
      }
      const { started, notRedirected, late } = await stream.stop();
      expect({ notRedirected, late }).toEqual({ notRedirected: [], late: [] });
      return started;
    }

    /** Whether a new meshed pod is redirected. */
    async function isRedirected(name: string): Promise<boolean> {
      const [address] = await cluster.kubectl.start(pod(name, { proxy: "sidecar" }));
      const answer = await cluster.kubectl.dial("client", `${address}:8080`);
      return "port" in answer && answer.port === 4143;
    }

    test("the plugin is in a file of its own; the owner's is untouched; the log gives the reason", async () => {
      expect(await cluster.chain()).toEqual(CHAIN);
      expect((await stat(DROPIN)).mode & 0o777).toBe(0o600);
      expect(await owners()).toEqual(owner);
      const log = await cluster.kubectl.run("logs", "--namespace=linkerd-cni", "daemonset/linkerd-cni");
      expect(log).toMatch(
        /99-linkerd-cni\.conf holds our stanza: .* \(dropin: containerd:\/\/2\.2\.\S+ reads drop-ins\)/,
      );
      expect(await isRedirected("first")).toBe(true);
    });

    test("while the owner writes its list twice a second, every pod is redirected and nothing is repaired", async () => {
      let times = 0;
      const started = await whilePodsStart(async () => {
        const stop = rewrite(text);
        await sleep(FIGHT_MS);
        times = await stop();
      });
      process.stdout.write(`${started} meshed pods during ${times} writes of the list: 0 without a redirect\n`);
      expect(await owners()).toEqual(owner);
      const metrics = await cluster.kubectl.run(
        "get",
        "--raw",
        `/api/v1/namespaces/linkerd-cni/pods/${await installerPod()}:9991/proxy/metrics`,
      );
      expect(metrics).not.toMatch(/linkerd_cni_(config_contested|rechains_total)\{/);
    });

    const installerPod = () =>
      cluster.kubectl.run(
        "get",
        "pods",
        "--namespace=linkerd-cni",
        "--selector=k8s-app=linkerd-cni",
        "--output=jsonpath={.items[0].metadata.name}",
      );

    test("pods that are under way when the kubelet starts again are redirected", async () => {
      const pods = Array.from({ length: EARLY }, (_, index) => pod(`under-way-${index}`, { proxy: "sidecar" }));
      await cluster.kubectl.apply(...pods);
      await cluster.machine.endDaemon(kubelet.name, "KILL");
      await startDaemon(cluster.machine, kubelet);
      const addresses = await cluster.kubectl.start(...pods);
      const answers = await cluster.kubectl.dialAll(
        "client",
        addresses.map((address) => `${address}:8080`),
      );
      expect(answers).toEqual(pods.map(() => expect.objectContaining({ port: 4143 })));
      await cluster.kubectl.stop(...pods.map(({ metadata }) => metadata.name));
    });

    test.each([
      ["edit", () => expect(existsSync(FOLDER)).toBe(false)],
      ["auto", async () => expect(await owners()).toEqual(owner)],
    ])("chaining becomes %s while pods start: all are redirected", async (chaining, check) => {
      const started = await whilePodsStart(() => cluster.upgrade("--reuse-values", `--set=chaining=${chaining}`));
      process.stdout.write(`to ${chaining}: ${started} meshed pods, 0 without a redirect\n`);
      expect(await cluster.chain()).toEqual(CHAIN);
      await check();
    });

    /**
     * Boots the node; its primary plugin writes its list again, and pods start before the installer.
     * @returns how many of them are redirected
     */
    async function redirectedAfterBoot(round: string): Promise<number> {
      const { kubectl, machine } = cluster;
      const select = (hold: string | null) =>
        kubectl.run(
          "patch",
          "daemonset/linkerd-cni",
          "--namespace=linkerd-cni",
          `--patch=${JSON.stringify({ spec: { template: { spec: { nodeSelector: { hold } } } } })}`,
        );
      await powerOff(machine);
      // No installer is there to see that it is not wanted on the node for the moment.
      await select("true");
      await kubectl.run("delete", "pods", "--all", "--all-namespaces", "--grace-period=0", "--force");
      await configure(text);
      await powerOn(machine);
      const names = Array.from({ length: EARLY }, (_, index) => `early-${round}-${index}`);
      const [, ...addresses] = await kubectl.start(
        pod("client"),
        // Their annotations decide: no installer is there to look them up.
        ...names.map((name) => pod(name, { proxy: "sidecar", annotations: INJECTED })),
      );
      const answers = await kubectl.dialAll(
        "client",
        addresses.map((address) => `${address}:8080`),
      );
      await select(null);
      await cluster.rolledOut();
      await kubectl.stop(...names);
      return answers.filter((answer) => "port" in answer && answer.port === 4143).length;
    }

    test("after a boot in which the owner writes its list, pods that start before the installer are redirected", async () => {
      const dropin = await redirectedAfterBoot("dropin");
      await cluster.upgrade("--reuse-values", "--set=chaining=edit");
      const edit = await redirectedAfterBoot("edit");
      await cluster.upgrade("--reuse-values", "--set=chaining=auto");
      process.stdout.write(
        `before the installer, redirected of ${EARLY}: by a drop-in ${dropin}, by an edit ${edit}\n`,
      );
      expect({ dropin, edit }).toEqual({ dropin: EARLY, edit: 0 });
    });
  },
  "2",
);
