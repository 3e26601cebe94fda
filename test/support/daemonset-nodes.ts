/** Nodes of a real API server with the real DaemonSet controller: a simulated kubelet runs installers on directories. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { paths } from "../cluster/paths";
import type { Installer, TestNode } from "../kernel/installer-node";
import { get } from "./http";
import { kubeconfig } from "./kubeconfig";
import { freePort } from "./ports";
import type { RealApi } from "./real-api";
import { until } from "./until";

const CONTROLLER_MANAGER = join(paths.binaries, "kube-controller-manager");
const ROUND_MS = 100;
const merge = "application/merge-patch+json";

/** Runs the DaemonSet controller alone. */
export class DaemonSetController {
  private readonly directory = mkdtempSync(join(tmpdir(), "controllers-"));

  private constructor(private child: ChildProcess | undefined) {}

  static async start({ admin }: RealApi): Promise<DaemonSetController> {
    const made = new DaemonSetController(undefined);
    const config = join(made.directory, "kubeconfig");
    writeFileSync(config, kubeconfig(admin));
    const flags = [
      `--kubeconfig=${config}`,
      "--controllers=daemonset-controller",
      "--leader-elect=false",
      "--bind-address=127.0.0.1",
      `--secure-port=${await freePort()}`,
      `--cert-dir=${made.directory}`,
      "--kube-api-qps=300",
      "--kube-api-burst=600",
    ];
    made.child = spawn(CONTROLLER_MANAGER, flags, { stdio: "ignore" });
    return made;
  }

  stop(): void {
    this.child?.kill("SIGKILL");
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

interface EnvVar {
  readonly name: string;
  readonly value?: string;
}

export interface NodePod {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly nodeName?: string;
    readonly containers: readonly { readonly env?: readonly EnvVar[] }[];
    readonly affinity?: {
      readonly nodeAffinity?: {
        readonly requiredDuringSchedulingIgnoredDuringExecution?: {
          readonly nodeSelectorTerms: readonly {
            readonly matchFields?: readonly { readonly values?: readonly string[] }[];
          }[];
        };
      };
    };
  };
}

/** The node that the DaemonSet controller made a pod for. */
export function targetOf({ spec }: NodePod): string {
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return spec.nodeName ?? terms?.[0]?.matchFields?.[0]?.values?.[0] ?? "";
}

/** A pod's container. */
interface Container {
  readonly port: number;
  installer: Installer;
  /** Every line of every start. */
  logs: Installer[];
  ready?: boolean;
  /** The time of the last probe that succeeded. */
  readyAt?: number;
  stopping: boolean;
  exits: number;
}

/** Time without a successful probe after which a pod is no longer ready: a busy machine pauses for many seconds. */
const UNREADY_AFTER_MS = 60_000;

/** Acts as scheduler and kubelets for pods of a DaemonSet. */
export class SimulatedKubelet {
  /** Nodes on which a pod of a version was ever started, by the pods' label `version`. */
  readonly touched = new Map<string, Set<string>>();
  /** Nodes that take no second pod. */
  readonly full = new Set<string>();
  /** Failures of nodes that were seen. */
  readonly broken: string[] = [];
  /** Whether every node must be chained at all times. */
  watchful = false;
  private rounds = 0;
  private readonly containers = new Map<string, Container>();
  private readonly stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();

  constructor(
    private readonly api: RealApi,
    private readonly collection: string,
    private readonly nodes: ReadonlyMap<string, TestNode>,
    private readonly isChained: (node: TestNode) => boolean,
  ) {}

  start(): void {
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
    await Promise.all([...this.containers.values()].map(({ installer }) => installer.stop("SIGKILL")));
  }

  async pods(): Promise<readonly NodePod[]> {
    return (await this.api.json<{ items: NodePod[] }>({ path: this.collection })).items;
  }

  /** The output of the containers of a version's pods. */
  log(version: string, pods: readonly NodePod[]): string {
    const of = pods.filter(({ metadata }) => metadata.labels["version"] === version);
    return of
      .flatMap(({ metadata }) => this.containers.get(metadata.uid)?.logs ?? [])
      .map(({ log }) => log)
      .join("");
  }

  exits(pods: readonly NodePod[]): number {
    return Math.max(0, ...pods.map(({ metadata }) => this.containers.get(metadata.uid)?.exits ?? 0));
  }

  /** Waits until the next probe of these pods succeeds. */
  async answer(pods: readonly NodePod[]): Promise<void> {
    const since = performance.now();
    const answers = ({ metadata: { uid } }: NodePod) => (this.containers.get(uid)?.readyAt ?? 0) > since;
    await until("probes that succeed", () => pods.every(answers));
  }

  /** Waits until every pod was probed so often. */
  async probes(count: number): Promise<void> {
    const last = this.rounds + count;
    await until("probes of all pods", () => this.rounds >= last);
  }

  private async run(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      const pods = await this.pods();
      await Promise.all(pods.map((pod) => this.handle(pod, pods)));
      if (this.watchful) this.look();
      this.rounds += 1;
      await new Promise((resolve) => setTimeout(resolve, ROUND_MS));
    }
  }

  private look(): void {
    for (const [name, node] of this.nodes) {
      const wrong = [...node.broken(), ...(this.isChained(node) ? [] : ["not chained"])];
      for (const each of wrong) this.broken.push(`${name}: ${each}`);
    }
  }

  private async handle(pod: NodePod, pods: readonly NodePod[]): Promise<void> {
    const { metadata, spec } = pod;
    const container = this.containers.get(metadata.uid);
    if (metadata.deletionTimestamp !== undefined) return this.terminate(pod, container);
    if (spec.nodeName === undefined) return this.bind(pod, pods);
    if (container === undefined) return this.startPod(pod);
    if (container.installer.hasEnded) {
      container.exits += 1;
      container.installer = await this.startContainer(pod, container.port);
      container.logs.push(container.installer);
    }
    await this.probe(pod, container);
  }

  private async bind(pod: NodePod, pods: readonly NodePod[]): Promise<void> {
    const name = targetOf(pod);
    if (this.full.has(name) && pods.some(({ spec }) => spec.nodeName === name)) return;
    const target = { apiVersion: "v1", kind: "Node", name };
    const body = { apiVersion: "v1", kind: "Binding", metadata: { name: pod.metadata.name }, target };
    await this.api.request({ method: "POST", path: `${this.collection}/${pod.metadata.name}/binding`, body });
  }

  private async startPod(pod: NodePod): Promise<void> {
    const { uid, labels } = pod.metadata;
    const version = labels["version"] ?? "";
    this.touched.set(version, (this.touched.get(version) ?? new Set()).add(targetOf(pod)));
    const port = await freePort();
    const installer = await this.startContainer(pod, port);
    this.containers.set(uid, { port, installer, logs: [installer], stopping: false, exits: 0 });
  }

  private async startContainer({ metadata, spec }: NodePod, port: number): Promise<Installer> {
    const node = this.nodes.get(spec.nodeName ?? "");
    if (node === undefined) throw new Error(`no node ${spec.nodeName}`);
    const env = spec.containers[0]?.env ?? [];
    return node.start({
      KUBERNETES_SERVICE_PORT: String(this.api.server.port),
      UNINSTALL_ON_STOP: "auto",
      HEALTH_PORT: String(port),
      POD_NAMESPACE: "linkerd-cni",
      POD_NAME: metadata.name,
      POD_UID: metadata.uid,
      NODE_NAME: spec.nodeName ?? "",
      ...Object.fromEntries(env.map(({ name, value = "" }) => [name, value.replaceAll("NODE", node.root)])),
    });
  }

  private async probe({ metadata: { name } }: NodePod, container: Container): Promise<void> {
    const asked = await get(container.port, "/ready").catch(() => undefined);
    const now = performance.now();
    if (asked?.status === 200) container.readyAt = now;
    const ready = now - (container.readyAt ?? Number.NEGATIVE_INFINITY) < UNREADY_AFTER_MS;
    if (ready === container.ready) return;
    container.ready = ready;
    const lastTransitionTime = `${new Date().toISOString().slice(0, 19)}Z`;
    const conditions = [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime }];
    const body = { status: { phase: "Running", conditions } };
    const path = `${this.collection}/${name}/status`;
    await this.api.request({ method: "PATCH", path, body, contentType: merge });
  }

  private async terminate({ metadata }: NodePod, container: Container | undefined): Promise<void> {
    if (container?.stopping === true) return;
    if (container !== undefined) container.stopping = true;
    const ended = container?.installer.stop("SIGTERM") ?? Promise.resolve(0);
    void ended.then(() => {
      const body = { gracePeriodSeconds: 0, preconditions: { uid: metadata.uid } };
      return this.api.request({ method: "DELETE", path: `${this.collection}/${metadata.name}`, body });
    });
  }
}
