/** From linkerd's chart to ours and back, on a real cluster, while meshed pods start: which are lost, and which mended. */
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "../support/requirements";
import { isFull, rounds } from "../support/rounds";
import { injectorWebhook } from "./injector";
import { linkerdChart } from "./linkerd-chart";
import { type Kubectl, pod, podAnnotations, podSpec } from "./pods";
import { clusterSuite, type TestCluster } from "./suite";

const installer = process.env["LINKERD_CNI_INSTALL_PEER"];
const plugin = process.env["LINKERD_CNI_PEER"];
const lacks = installer === undefined || plugin === undefined ? "linkerd's programs: LINKERD_CNI_PEER" : undefined;

/** Batches under way at once, and the pods of each. */
const LANES = 2;
const SIZE = 10;
/** Pods of one way, at least. */
const PODS = rounds(30, 100);
/**
 * Pods that may start without their redirect when linkerd's installer ends: it takes the chain away, and ours puts it
 * back at once. How many fall into that moment depends on the machine.
 */
const LINKERDS_GAP = 3;
/** Exit code of linkerd-network-validator, and of the tests' validator, in a pod that is not redirected. */
const NOT_REDIRECTED = 95;

interface ContainerState {
  readonly terminated?: { readonly exitCode: number };
}

interface MeshedPod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly status: {
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly initContainerStatuses?: readonly {
      readonly state?: ContainerState;
      readonly lastState?: ContainerState;
    }[];
  };
}

const isLost = ({ status }: MeshedPod) =>
  (status.initContainerStatuses ?? []).some(({ state, lastState }) =>
    [state, lastState].some((each) => each?.terminated?.exitCode === NOT_REDIRECTED),
  );
const isReady = ({ metadata, status }: MeshedPod) =>
  metadata.deletionTimestamp === undefined &&
  (status.conditions ?? []).some(({ type, status }) => type === "Ready" && status === "True");

const replicaSet = (name: string) => {
  const options = { proxy: "sidecar", validator: true } as const;
  const labels = { "linkerd.io/control-plane-ns": "linkerd", batch: name };
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name, namespace: "default" },
    spec: {
      replicas: SIZE,
      selector: { matchLabels: { batch: name } },
      template: { metadata: { labels, annotations: podAnnotations(options) }, spec: podSpec(options) },
    },
  };
};

/** Starts meshed pods with a validator, batch after batch, and counts those that started without their redirect. */
class ValidatedStream {
  private static batches = 0;
  private stopping = false;
  private readonly running: Promise<unknown>;
  started = 0;
  /** Pods that are redirected, but whose proxy did not answer. */
  unanswered = 0;
  /** Names of pods that started without their redirect. */
  readonly lost = new Set<string>();
  /** Names of batches. */
  readonly names: string[] = [];

  /** @param mended whether a controller replaces pods that are lost */
  constructor(
    private readonly kubectl: Kubectl,
    private readonly mended: boolean,
  ) {
    this.running = Promise.all(Array.from({ length: LANES }, () => this.run()));
    this.running.catch(() => undefined);
  }

  /** Waits until so many pods have started. @throws the error that has ended the stream early */
  async until(pods: number): Promise<void> {
    while (this.started < pods) {
      if (this.stopping) await this.running;
      await sleep(100);
    }
  }

  async stop(): Promise<void> {
    this.stopping = true;
    await this.running;
  }

  private async run(): Promise<void> {
    try {
      while (!this.stopping) await this.batch(`stream-${ValidatedStream.batches++}`);
    } finally {
      this.stopping = true;
    }
  }

  private async batch(name: string): Promise<void> {
    this.names.push(name);
    await this.kubectl.apply(replicaSet(name));
    const addresses = await this.settled(name);
    const answers =
      addresses.length === 0
        ? []
        : await this.kubectl.dialAll(
            "client",
            addresses.map((address) => `${address}:8080`),
          );
    this.unanswered += answers.filter((answer) => !("port" in answer && answer.port === 4143)).length;
    this.started += SIZE;
    await this.kubectl.run("delete", "replicaset", name, "--wait=false");
  }

  /** Waits until each pod is ready, or finally lost. @returns addresses of the ready pods */
  private async settled(name: string): Promise<string[]> {
    let items: readonly MeshedPod[] = [];
    for (const end = Date.now() + 120_000; Date.now() < end; await sleep(1000)) {
      ({ items } = await this.kubectl.json<{ items: MeshedPod[] }>("get", "pods", `--selector=batch=${name}`));
      for (const each of items.filter(isLost)) this.lost.add(each.metadata.name);
      const ready = items.filter(isReady);
      const settled = this.mended ? ready : items.filter((each) => isReady(each) || isLost(each));
      if (settled.length === SIZE) return ready.map(({ status }) => status.podIP ?? "");
    }
    throw new Error(`pods of ${name} hang: ${JSON.stringify(items.map(({ status }) => status))}`);
  }
}

/** The result of one way. */
interface Row {
  readonly way: string;
  readonly by: string;
  readonly pods: number;
  readonly lost: number;
  readonly mended: number;
}

const COLUMNS = ["from, to", "by", "meshed pods started", "without redirect", "of these replaced"];
const cells = (words: readonly (string | number)[]) => `| ${words.join(" | ")} |\n`;
const line = ({ way, by, pods, lost, mended }: Row) => cells([way, by, pods, lost, mended]);

/** One change, while pods start. */
interface Way {
  readonly way: string;
  readonly by: string;
  readonly change: () => Promise<unknown>;
  /** The installer that runs afterwards: ours or linkerd's. */
  readonly to: "ours" | "linkerd's";
  /** The repair controller runs afterwards, and may replace pods. */
  readonly repairs?: boolean;
  /** Pods that may start without their redirect. @default any */
  readonly atMost?: number;
}

/** The repair controller may have replaced a lost pod before the test looked: it published an Event about each. */
async function reported({ kubectl }: TestCluster): Promise<readonly string[]> {
  type Events = { items: { involvedObject: { name: string } }[] };
  const { items } = await kubectl.json<Events>("get", "events", "--field-selector=reason=LinkerdCNINotConfigured");
  return items.map(({ involvedObject }) => involvedObject.name);
}

/** Changes the installation while pods start. */
async function measure(cluster: TestCluster, { way, by, change, repairs = false }: Way): Promise<Row> {
  const stream = new ValidatedStream(cluster.kubectl, repairs);
  // Some are there, and others under way, when the change begins.
  await stream.until(SIZE);
  await change();
  await cluster.rolledOut();
  const before = new Set(stream.names);
  await stream.until(PODS);
  await stream.stop();
  expect(stream.unanswered).toBe(0);
  const batchOf = (pod: string) => stream.names.find((batch) => pod.startsWith(`${batch}-`));
  const lost = [...new Set([...stream.lost, ...(await reported(cluster))])].filter((name) => batchOf(name));
  // The result is complete.
  expect(lost.filter((name) => !before.has(batchOf(name) ?? ""))).toEqual([]);
  return { way, by, pods: stream.started, lost: lost.length, mended: repairs ? lost.length : 0 };
}

const [UPGRADE, ROLLBACK, UNDO] = ["helm upgrade", "helm rollback", "kubectl rollout undo"] as const;

const migration = (cluster: TestCluster) => {
  suite("with linkerd's own programs", lacks, () => {
    const rows: Row[] = [];
    const undo = () => cluster.kubectl.run("rollout", "undo", "--namespace=linkerd-cni", "daemonset/linkerd-cni");
    const upgrade = (...options: string[]) => cluster.upgrade("--set=repairController.enabled=true", ...options);
    const image = () =>
      cluster.kubectl.run(
        "get",
        "pods",
        "--namespace=linkerd-cni",
        "--selector=k8s-app=linkerd-cni",
        "--output=jsonpath={.items[*].spec.containers[0].image}",
      );

    beforeAll(async () => {
      // The repair controller replaces pods only if new ones are injected; no pod here is injected by this one.
      await cluster.kubectl.apply(injectorWebhook("Fail"));
      const chart = await linkerdChart(cluster.machine, { installer: installer ?? "", plugin: plugin ?? "" });
      await cluster.helm("install", "linkerd-cni", "-n", "linkerd-cni", "--create-namespace", chart);
      await cluster.rolledOut();
      await cluster.kubectl.start(pod("client"));
    });
    afterAll(() => {
      const rule = `|${"---|".repeat(COLUMNS.length)}\n`;
      process.stdout.write(`\n${cells(COLUMNS)}${rule}${rows.map(line).join("")}`);
    });

    // Each begins where the one before has ended. Revision 1 of the release is linkerd's, 2 is ours.
    const ways: readonly Way[] = [
      {
        way: "linkerd's to ours",
        by: UPGRADE,
        change: () => upgrade(),
        to: "ours",
        repairs: true,
        atMost: LINKERDS_GAP,
      },
      { way: "ours to linkerd's, by our ConfigMap", by: UNDO, change: undo, to: "linkerd's", atMost: 0 },
      {
        way: "linkerd's to ours, by our ConfigMap",
        by: UNDO,
        change: undo,
        to: "ours",
        repairs: true,
        atMost: LINKERDS_GAP,
      },
      {
        way: "ours to ours, other values",
        by: UPGRADE,
        change: () => upgrade("--set=ignoreInboundPorts=25"),
        to: "ours",
        repairs: true,
        atMost: 0,
      },
      { way: "ours to linkerd's", by: ROLLBACK, change: () => cluster.rollback(1), to: "linkerd's", atMost: 0 },
      // By linkerd's update strategy, which takes the old pod away first.
      { way: "linkerd's to ours, by linkerd's ConfigMap", by: UNDO, change: undo, to: "ours" },
    ];

    test.each(ways)("$way, by $by", async (way) => {
      const row = await measure(cluster, way);
      rows.push(row);
      process.stdout.write(line(row));
      expect((await image()).includes("linkerd-cni.test/linkerd")).toBe(way.to === "linkerd's");
      const chain = await cluster.chain();
      // Our drop-in stays beside linkerd's stanza.
      expect(way.to === "ours" ? chain : [...new Set(chain)]).toEqual(["bridge", "portmap", "linkerd-cni"]);
      expect(row.lost).toBeLessThanOrEqual(way.atMost ?? row.pods);
    });
  });
};

const TITLE = "from linkerd's chart to ours and back, while meshed pods start";
// Ours chains by a drop-in there.
clusterSuite(`${TITLE}, on containerd 2.2`, migration, "2");
if (isFull) clusterSuite(`${TITLE}, on the distribution's containerd`, migration);
