/** A node that loses power and starts again: how many meshed pods start before our pod, without a redirect. */
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { aligned } from "../../cli/aligned";
import { isFull, rounds } from "../support/rounds";
import { until } from "../support/until";
import { powerOff, powerOn } from "./faults";
import { CONFIGURATION } from "./node";
import { NriPlugin } from "./nri";
import { onDisk } from "./paths";
import { INJECTED, type Pod, pod } from "./pods";
import type { RuntimeName } from "./runtimes";
import { clusterSuite, NET_DIR, type TestCluster } from "./suite";

const PODS = rounds(4, 20);
const CLIENT = "client";
const LABELS = { app: "meshed" };
const NAMES = Array.from({ length: PODS }, (_, index) => `meshed-${index}`);

/** What the node's other programs do when it starts. */
const BOOTS = {
  nothing: { empties: false, writes: false },
  "the primary CNI writes its file": { empties: false, writes: true },
  "the directory is empty, and the primary CNI writes its file": { empties: true, writes: true },
} as const;
type Boot = keyof typeof BOOTS;

interface Row {
  readonly runtime: RuntimeName;
  readonly options?: readonly string[];
  readonly installed?: (cluster: TestCluster) => Promise<void>;
  /** Boots after which no pod is without a redirect. */
  readonly keeps: readonly Boot[];
}

const ROWS: Readonly<Record<string, Row>> = {
  "a drop-in, on containerd 2.2": { runtime: "2", keeps: ["nothing", "the primary CNI writes its file"] },
  "an edit, on containerd 1.6": { runtime: "1", keeps: ["nothing"] },
  "NRI alone, on containerd 2.2": {
    runtime: "2",
    options: ["--set=nri.enabled=true", "--set=chained=false"],
    installed: (cluster) => new NriPlugin(cluster).rolledOut(),
    keeps: Object.keys(BOOTS) as Boot[],
  },
  "a drop-in, on CRI-O": { runtime: "crio", keeps: ["nothing", "the primary CNI writes its file"] },
  "an edit, on CRI-O": { runtime: "crio", options: ["--set=chaining=edit"], keeps: ["nothing"] },
};

interface Started extends Pod {
  readonly status: Pod["status"] & {
    readonly containerStatuses?: readonly { readonly restartCount: number; readonly ready: boolean }[];
  };
}

const seen: string[][] = [];
afterAll(() => {
  process.stdout.write(aligned([["pods are chained by", "when the node starts", "without a redirect"], ...seen]));
});

const rows = Object.entries(ROWS).slice(0, isFull ? undefined : 1);
for (const [name, { runtime, options = [], installed, keeps }] of rows) {
  clusterSuite(
    `${name}: a node that starts again`,
    (cluster) => {
      let list: string;

      beforeAll(async () => {
        list = await readFile(CONFIGURATION, "utf8");
        await cluster.install(...options);
        await installed?.(cluster);
      });

      const meshed = () => NAMES.map((each) => pod(each, { proxy: "sidecar", annotations: INJECTED, labels: LABELS }));

      async function reboot({ empties, writes }: (typeof BOOTS)[Boot]): Promise<void> {
        await powerOff(cluster.machine);
        const directory = onDisk(NET_DIR);
        if (empties) for (const each of await readdir(directory)) await rm(join(directory, each), { recursive: true });
        await powerOn(cluster.machine);
        if (writes) await mkdir(directory, { recursive: true }).then(() => writeFile(CONFIGURATION, list));
      }

      /** Waits until a pod's containers, or those of the pod that replaced it, run again. */
      const back = (each: string) =>
        until(`${each} to be back`, async () => {
          const { status } = await cluster.kubectl.json<Started>("get", `pod/${each}`);
          const { containerStatuses = [] } = status;
          return containerStatuses.length > 0 && containerStatuses.every((one) => one.ready && one.restartCount > 0);
        });

      test.each(Object.keys(BOOTS).slice(0, isFull ? 3 : 1) as Boot[])(
        "%s",
        async (boot) => {
          await cluster.kubectl.start(pod(CLIENT), ...meshed());
          await reboot(BOOTS[boot]);
          await Promise.all([CLIENT, ...NAMES].map(back));
          await cluster.rolledOut();
          await installed?.(cluster);
          const where = ["get", "pods", "--selector=app=meshed"];
          const { items } = await cluster.kubectl.json<{ items: Started[] }>(...where);
          const addresses = items.map(({ status }) => `${status.podIP}:8080`);
          const answers = await cluster.kubectl.dialAll(CLIENT, addresses);
          const lost = answers.filter((answer) => !("port" in answer && answer.port === 4143));
          seen.push([name, boot, `${lost.length} of ${addresses.length}`]);
          expect(addresses).toHaveLength(PODS);
          if (keeps.includes(boot)) expect(lost).toEqual([]);
          // Whatever was lost, a pod that starts now is redirected.
          const [address = ""] = await cluster.kubectl.start(pod("later", { proxy: "sidecar", annotations: INJECTED }));
          expect(await cluster.kubectl.dial(CLIENT, `${address}:8080`)).toMatchObject({ port: 4143 });
          await cluster.kubectl.run("delete", "pods", "--all", "--timeout=180s");
        },
        600_000,
      );
    },
    runtime,
  );
}
