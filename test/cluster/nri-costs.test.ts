/**
 * What the redirect by NRI costs: the start of a pod beside the chain's, and the plugin's memory. With FULL=1 it
 * measures so often that the ratios mean something; else it looks whether what would be measured works.
 */
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { outputs } from "../../build/paths";
import { NodePath, NriVariable } from "../../cni/contract";
import { defaultStanza } from "../support/default-stanza";
import { rounds as asked } from "../support/rounds";
import { until } from "../support/until";
import { median, printTable } from "./costs";
import { ContainerRuntime } from "./cri";
import { CONFIGURATION, configure, kubelet } from "./node";
import { inSandbox } from "./nri";
import { withPeer } from "./peer";
import { INJECTED, pod } from "./pods";
import { containerd, NRI_SOCKET } from "./runtimes";
import { clusterSuite } from "./suite";

/** Rounds, there and back, and pods of each kind in a round, so that other load affects every way. */
const ROUNDS = asked(2, 10);
const PODS = 3;
/** Pods of a turn that are not counted: the runtime has just read another configuration. */
const WARM = 1;
/** Sandboxes after which the plugin's memory is looked at, and how many start at once; a played runtime makes 1,000. */
const SANDBOXES = asked(100, 1000);
const FIRST = 20;
const AT_ONCE = 4;
const KIB = 1024;

const LABELS = { "linkerd.io/control-plane-ns": "linkerd" };
const KINDS = {
  "not meshed": pod("plain"),
  meshed: pod("meshed", { proxy: "sidecar", annotations: INJECTED, labels: LABELS }),
} as const;
type Kind = keyof typeof KINDS;

const peer = process.env["LINKERD_CNI_PEER"];
const PLUGIN = "linkerd-cni-nri";

/** How pods get their redirect. */
interface Way {
  readonly name: string;
  readonly configuration: string;
  readonly nri: boolean;
}

clusterSuite(
  "the cost of the redirect by NRI",
  (cluster) => {
    let runtime: ContainerRuntime;
    let plain: string;
    let started = 0;
    const ways: Way[] = [];

    beforeAll(async () => {
      plain = await readFile(CONFIGURATION, "utf8");
      // An installer that is gone shall leave the plugin in place, to be called from chains made here.
      await cluster.install("--set=uninstallOnStop=never", "--set=chaining=edit");
      const chain = await readFile(CONFIGURATION, "utf8");
      ways.push(
        { name: "nothing", configuration: plain, nri: false },
        { name: "chain", configuration: chain, nri: false },
      );
      ways.push({ name: "NRI", configuration: plain, nri: true });
      if (peer !== undefined)
        ways.push({ name: "linkerd's chain", configuration: await withPeer(peer, plain), nri: false });
      await cluster.kubectl.run("delete", "daemonset", "linkerd-cni", "--namespace=linkerd-cni");
      await cluster.installerGone();
      // It would end sandboxes that it does not know.
      await cluster.machine.endDaemon(kubelet.name);
      // The chained plugins look this up.
      await cluster.kubectl.apply(...Object.values(KINDS));
      runtime = new ContainerRuntime(cluster.machine.outside(containerd.socket));
    });
    afterAll(() => runtime?.close());

    /** Makes a sandbox. @returns its id, and the milliseconds it took */
    async function sandbox(kind: Kind): Promise<{ readonly id: string; readonly tookMs: number }> {
      const { namespace, name, labels, annotations } = KINDS[kind].metadata;
      const begin = performance.now();
      const id = await runtime.run({ namespace, name, labels, annotations, uid: `sandbox-${started++}` });
      return { id, tookMs: performance.now() - begin };
    }

    async function isRedirected(id: string): Promise<boolean> {
      return (await inSandbox(cluster.machine, id, "nft", "list", "ruleset")).includes("redirect to :4143");
    }

    async function startPlugin(): Promise<void> {
      const variables = {
        [NriVariable.socketDir]: NRI_SOCKET.replace(/\/[^/]*$/, ""),
        [NriVariable.netnsDir]: NodePath.netnsDir,
        [NriVariable.index]: "10",
        [NriVariable.stanza]: await defaultStanza(outputs.manifests, false),
      };
      const environment = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
      await cluster.machine.daemon(PLUGIN, ["env", "--ignore-environment", ...environment, outputs.plugin, "nri"]);
      await until("the plugin's connection", async () => {
        const pid = await cluster.machine.pidOf(PLUGIN);
        const sockets = await cluster.machine.run(["ss", "--unix", "--processes"]);
        return pid !== undefined && sockets.includes(NRI_SOCKET) && sockets.includes(`pid=${pid},`);
      });
    }

    /** Milliseconds of each pod, round by round. */
    const found = new Map<string, number[][]>();
    const rounds = (name: string, kind: Kind) => found.get(`${kind}: ${name}`) ?? [];
    const time = (name: string, kind: Kind) => median(rounds(name, kind).flat());
    /** How much longer a pod takes than without any mesh in the same round. */
    const ratio = (name: string, kind: Kind) => {
      const nothing = rounds("nothing", kind);
      return median(rounds(name, kind).map((times, round) => median(times) / median(nothing[round] ?? [])));
    };

    async function takeTurn({ name, configuration, nri }: Way): Promise<void> {
      await configure(configuration);
      if (nri) await startPlugin();
      await sleep(200);
      const kinds = Object.keys(KINDS) as Kind[];
      const times = new Map(kinds.map((kind) => [kind, [] as number[]]));
      for (let index = 0; index < WARM + PODS; index++) {
        for (const kind of kinds) {
          const { id, tookMs } = await sandbox(kind);
          if (index < WARM) expect(await isRedirected(id)).toBe(kind === "meshed" && name !== "nothing");
          else times.get(kind)?.push(tookMs);
          await runtime.remove(id);
        }
      }
      for (const [kind, each] of times) found.set(`${kind}: ${name}`, [...rounds(name, kind), each]);
      if (nri) await cluster.machine.endDaemon(PLUGIN);
    }

    test("a pod is redirected, or not, by each way whose time is measured", async () => {
      for (let round = 0; round < ROUNDS; round++) {
        for (const way of round % 2 === 0 ? ways : [...ways].reverse()) await takeTurn(way);
      }
      const kinds = Object.keys(KINDS) as Kind[];
      printTable(
        [`RunPodSandbox, median ms of ${ROUNDS * PODS}`, ...kinds.flatMap((kind) => [kind, "of nothing"])],
        ways.map(({ name }) => [
          name,
          ...kinds.flatMap((kind) => [time(name, kind).toFixed(1), ratio(name, kind).toFixed(2)]),
        ]),
      );
    }, 600_000);

    /** Memory of the plugin's process in KiB. */
    async function memory(): Promise<Record<"resident" | "proportional" | "private", number>> {
      const pid = await cluster.machine.pidOf(PLUGIN);
      const text = await cluster.machine.run(["cat", `/proc/${pid}/smaps_rollup`]);
      const of = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB`, "m").exec(text)?.[1] ?? Number.NaN);
      return {
        resident: of("Rss"),
        proportional: of("Pss"),
        private: of("Private_Clean") + of("Private_Dirty"),
      };
    }

    test(`the plugin's memory does not grow with ${SANDBOXES} sandboxes`, async () => {
      await configure(plain);
      await startPlugin();
      const several = async (count: number) => {
        const lanes = Array.from({ length: AT_ONCE }, async () => {
          for (let index = 0; index < count / AT_ONCE; index++) await runtime.remove((await sandbox("meshed")).id);
        });
        await Promise.all(lanes);
      };
      const rows: [string, Awaited<ReturnType<typeof memory>>][] = [["at rest", await memory()]];
      await several(FIRST);
      rows.push([`after ${FIRST} sandboxes`, await memory()]);
      await several(SANDBOXES - FIRST);
      rows.push([`after ${SANDBOXES}`, await memory()]);
      printTable(
        ["memory of the NRI plugin, MiB", "resident", "proportional", "private"],
        rows.map(([when, each]) => [when, ...Object.values(each).map((size) => (size / KIB).toFixed(2))]),
      );
      const last = await sandbox("meshed");
      expect(await isRedirected(last.id)).toBe(true);
      await runtime.remove(last.id);
      // Pages that a child shares with it for a moment are not private.
      const [, early, late] = rows.map(([, each]) => each.resident);
      expect((late ?? 0) - (early ?? 0)).toBeLessThan(KIB / 2);
      await cluster.machine.endDaemon(PLUGIN);
    }, 900_000);
  },
  "2",
);
