/**
 * `npm run scale`: the programs of many nodes, each a process, against one real API server and etcd. Prints their requests
 * and the cost. Needs root, and runs in its own network namespace, which package.json makes.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { App, Chart } from "cdk8s";
import { outputs } from "../../build/paths";
import { reasonOf } from "../../cni/errors";
import { LinkerdCni } from "../../constructs/linkerd-cni";
import { defaultStanza } from "../../demo/stanza";
import { SMALL_PLUGIN } from "../kernel/installer-node";
import { buildPrograms } from "../support/program";
import { type ApiObject, RealApi, realApiMissing } from "../support/real-api";
import { AUDIT_POLICY, byKind, peakPerSecond, type Request, readRequests, tooMuch } from "./audit";
import { NAMESPACE, ScaleNode } from "./nodes";

const { values: options } = parseArgs({
  options: {
    nodes: { type: "string", default: "1000" },
    "start-seconds": { type: "string", default: "60" },
    "rest-seconds": { type: "string", default: "180" },
    "down-seconds": { type: "string", default: "300" },
    "back-seconds": { type: "string", default: "120" },
    /** The API server gives no token for less than ten minutes; 0: for a day, and no renewal is waited for. */
    "token-seconds": { type: "string", default: "600" },
    /** Prints JSON in place of a table. */
    json: { type: "boolean", default: false },
    waves: { type: "string", default: "10" },
    "pods-per-node": { type: "string", default: "10" },
  },
});
const NODES = Number(options.nodes);
const START_MS = Number(options["start-seconds"]) * 1000;
const REST_MS = Number(options["rest-seconds"]) * 1000;
const DOWN_MS = Number(options["down-seconds"]) * 1000;
const BACK_MS = Number(options["back-seconds"]) * 1000;
const TOKEN_SECONDS = Number(options["token-seconds"]);
const WAVES = Number(options.waves);
const PODS = Number(options["pods-per-node"]);
/** As often as the kubelet asks whether a pod is ready. */
const READY_MS = 5_000;
const DAY_SECONDS = 24 * 60 * 60;
/** Requests of the simulation itself that are under way at once. */
const PARALLEL = 16;

const say = (text: string) => process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);

/** Does something for each item, with some under way at once. */
async function each<T>(items: readonly T[], parallel: number, work: (item: T) => Promise<unknown>): Promise<void> {
  const rest = [...items];
  const lane = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: parallel }, lane));
}

async function until(what: string, condition: () => boolean, seconds: number): Promise<void> {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(200)) if (condition()) return;
  throw new Error(`waited ${seconds} s for ${what}`);
}

/** Traffic of the API server's port so far, as the kernel counts it. */
class Traffic {
  constructor(port: number) {
    const rules = `table inet scale {
      counter connections {}
      counter asked {}
      counter answered {}
      chain input {
        type filter hook input priority 0;
        tcp dport ${port} tcp flags & (syn | ack) == syn counter name connections
        tcp dport ${port} counter name asked
        tcp sport ${port} counter name answered
      }
    }`;
    execFileSync("nft", ["-f", "-"], { input: rules });
  }

  read(): { readonly connections: number; readonly asked: number; readonly answered: number } {
    const text = execFileSync("nft", ["--json", "list", "counters"], { encoding: "utf8" });
    type Listed = { nftables: { counter?: { name: string; packets: number; bytes: number } }[] };
    const counters = (JSON.parse(text) as Listed).nftables.flatMap(({ counter }) => counter ?? []);
    const of = (name: string) => counters.find((counter) => counter.name === name);
    return {
      connections: of("connections")?.packets ?? 0,
      asked: of("asked")?.bytes ?? 0,
      answered: of("answered")?.bytes ?? 0,
    };
  }
}

/** Seconds of a processor that a process has taken. */
function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

const kibibytes = (path: string, key: string) =>
  Number(new RegExp(`^${key}:\\s+(\\d+) kB$`, "m").exec(readFileSync(path, "utf8"))?.[1] ?? 0);
const residentMiB = (pid: number) => Math.round(kibibytes(`/proc/${pid}/status`, "VmRSS") / 1024);

interface Phase {
  readonly name: string;
  readonly begun: number;
  readonly ended: number;
  readonly connections: number;
  readonly asked: number;
  readonly answered: number;
  readonly apiServerCpu: number;
  readonly apiServerMiB: number;
  readonly etcdMiB: number;
  /** Of those that run at the end, which others may have been at the beginning. */
  readonly nodesCpu: number;
}

/** Runs the phases one after another, and measures each. */
class Simulation {
  readonly phases: Phase[] = [];

  constructor(
    private readonly api: RealApi,
    private readonly traffic: Traffic,
    private readonly nodes: readonly ScaleNode[],
  ) {}

  async phase(name: string, work: () => Promise<unknown>): Promise<void> {
    say(name);
    const before = { ...this.traffic.read(), cpu: cpuSeconds(this.api.pids.apiServer), nodes: this.nodesCpu() };
    const { apiServer } = this.api.pids;
    const begun = Date.now();
    await work();
    const after = this.traffic.read();
    const { pids } = this.api;
    this.phases.push({
      name,
      begun,
      ended: Date.now(),
      connections: after.connections - before.connections,
      asked: after.asked - before.asked,
      answered: after.answered - before.answered,
      // The counter of a process that was restarted began at 0.
      apiServerCpu: cpuSeconds(pids.apiServer) - (pids.apiServer === apiServer ? before.cpu : 0),
      apiServerMiB: residentMiB(pids.apiServer),
      etcdMiB: residentMiB(pids.etcd),
      nodesCpu: Math.max(0, this.nodesCpu() - before.nodes),
    });
  }

  private nodesCpu(): number {
    return this.nodes.flatMap(({ pids }) => pids).reduce((sum, pid) => sum + cpuSeconds(pid), 0);
  }
}

const cells = (words: readonly (string | number)[]) => `| ${words.join(" | ")} |\n`;
const perSecond = (count: number, { begun, ended }: Phase) => (count * 1000) / (ended - begun);
const during = (requests: readonly Request[], { begun, ended }: Phase) =>
  requests.filter(({ at }) => begun <= at && at < ended);

/** The table of docs/scale.md. */
function table(phases: readonly Phase[], requests: readonly Request[]): string {
  const head = [
    "phase",
    "s",
    "requests",
    "a second, at most",
    "a node and hour",
    "connections",
    "kB asked",
    "kB answered",
    "API server, cores",
    "API server, MiB",
    "etcd, MiB",
    "all nodes, cores",
  ];
  const rows = phases.map((phase) => {
    const asked = during(requests, phase);
    return cells([
      phase.name,
      Math.round((phase.ended - phase.begun) / 1000),
      asked.length,
      peakPerSecond(asked),
      ((perSecond(asked.length, phase) * 3600) / NODES).toFixed(1),
      phase.connections,
      Math.round(phase.asked / 1000),
      Math.round(phase.answered / 1000),
      perSecond(phase.apiServerCpu, phase).toFixed(2),
      phase.apiServerMiB,
      phase.etcdMiB,
      perSecond(phase.nodesCpu, phase).toFixed(2),
    ]);
  });
  const kinds = phases.map(
    (phase) =>
      `\n${phase.name}: ${byKind(during(requests, phase))
        .map(([kind, count]) => `${count} ${kind}`)
        .join(", ")}\n`,
  );
  return [cells(head), `|${"---|".repeat(head.length)}\n`, ...rows, ...kinds].join("");
}

/** The same, for a test. */
const json = (phases: readonly Phase[], requests: readonly Request[]): string =>
  JSON.stringify(
    Object.fromEntries(phases.map((phase) => [phase.name, Object.fromEntries(byKind(during(requests, phase)))])),
  );

const RIGHTS = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

/** Creates the chart's objects, and nodes with meshed pods. @returns the UID of the DaemonSet */
async function prepare(api: RealApi): Promise<string> {
  const chart = new Chart(new App(), "chart");
  new LinkerdCni(chart, "cni", { namespace: NAMESPACE, repairController: { enabled: true } });
  const objects = chart.toJson() as readonly ApiObject[];
  await api.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
  await api.create(...objects.filter(({ kind }) => RIGHTS.includes(kind)));
  const daemonSet = objects.find(({ kind }) => kind === "DaemonSet");
  const path = `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets`;
  const { metadata } = await api.json<{ metadata: { uid: string } }>({ method: "POST", path, body: daemonSet });
  await api.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } });
  const names = Array.from({ length: NODES }, (_, index) => `node-${index}`);
  await each(names, PARALLEL, async (name) => {
    await api.create({ apiVersion: "v1", kind: "Node", metadata: { name } });
    const status = { nodeInfo: { containerRuntimeVersion: "containerd://2.2.1" } };
    await api.request({
      method: "PATCH",
      path: `/api/v1/nodes/${name}/status`,
      body: { status },
      contentType: "application/merge-patch+json",
    });
  });
  const pods = names.flatMap((node) =>
    Array.from({ length: PODS }, (_, index) => ({ node, name: `${node}-${index}` })),
  );
  await each(pods, PARALLEL, ({ node, name }) => api.create(meshedPod(name, node)));
  return metadata.uid;
}

const meshedPod = (name: string, nodeName: string) =>
  ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: "shop",
      labels: { "linkerd.io/control-plane-ns": "linkerd" },
      annotations: { "linkerd.io/proxy-version": "edge-26.5.1" },
    },
    spec: {
      nodeName,
      initContainers: [{ name: "linkerd-network-validator", image: "none" }],
      containers: [
        { name: "app", image: "none" },
        { name: "linkerd-proxy", image: "none" },
      ],
    },
  }) as ApiObject;

/** All phases. */
async function simulate(simulation: Simulation, api: RealApi, nodes: readonly ScaleNode[]): Promise<void> {
  await simulation.phase("start", async () => {
    const begun = Date.now();
    await each([...nodes.entries()], PARALLEL, async ([index, node]) => {
      await sleep(Math.max(0, begun + (index * START_MS) / NODES - Date.now()));
      await node.start();
    });
    await until("all nodes to have the plugin", () => nodes.every(({ isInstalled }) => isInstalled), 120);
  });
  const started = Date.now();
  await sleep(10_000);
  await simulation.phase("rest", () => sleep(REST_MS));
  await simulation.phase("rollout", async () => {
    const size = Math.ceil(NODES / WAVES);
    for (let first = 0; first < NODES; first += size) {
      const wave = nodes.slice(first, first + size);
      await each(wave, wave.length, (node) => node.replace(() => sleep(READY_MS)));
    }
  });
  if (TOKEN_SECONDS > 0) await renewals(simulation, nodes, started);
  await simulation.phase("API server down", async () => {
    await api.down();
    await sleep(DOWN_MS);
    await api.up();
  });
  await simulation.phase("API server back", () => sleep(BACK_MS));
}

/** Waits until each node has another token. */
async function renewals(simulation: Simulation, nodes: readonly ScaleNode[], started: number): Promise<void> {
  await simulation.phase("renewal of all tokens", async () => {
    const before = nodes.map(({ token }) => token);
    const due = started + TOKEN_SECONDS * 1000 - Date.now();
    await until(
      "all tokens to be renewed",
      () => nodes.every(({ token }, index) => token !== before[index]),
      due / 1000 + 60,
    );
  });
}

/** Results that have no place in the table. */
async function tell(api: RealApi, nodes: readonly ScaleNode[]): Promise<void> {
  const { body } = await api.request({ path: "/metrics" });
  const refused = body.split("\n").filter((line) => /^apiserver_flowcontrol_rejected_requests_total/.test(line));
  process.stdout.write(`\nrefused by API Priority and Fairness: ${refused.join(", ") || "none"}\n`);
  const sizes = nodes.slice(0, 20).map(({ pids }) => pids.map((pid) => kibibytes(`/proc/${pid}/smaps_rollup`, "Pss")));
  for (const [index, program] of ["installer", "repair controller"].entries()) {
    const kB = sizes.map((each) => each[index] ?? 0).sort((one, other) => one - other);
    process.stdout.write(`${program}: ${((kB[kB.length >> 1] ?? 0) / 1024).toFixed(1)} MiB (PSS, median)\n`);
  }
}

async function main(): Promise<void> {
  const missing = realApiMissing();
  if (missing !== undefined) throw new Error(`needs ${missing}`);
  await buildPrograms();
  const place = mkdtempSync(join(tmpdir(), "scale-"));
  chmodSync(place, 0o755);
  const image = join(place, "image");
  mkdirSync(image);
  writeFileSync(join(image, "linkerd-cni"), SMALL_PLUGIN, { mode: 0o755 });
  const [policy, log] = [join(place, "policy.json"), join(place, "audit.log")];
  writeFileSync(policy, JSON.stringify(AUDIT_POLICY));
  const api = await RealApi.start("nobody", [
    `--audit-policy-file=${policy}`,
    `--audit-log-path=${log}`,
    // It finds none if there is no default route.
    "--advertise-address=192.0.2.1",
  ]);
  const nodes: ScaleNode[] = [];
  try {
    say(`${NODES} nodes with ${PODS} meshed pods each`);
    const daemonSet = await prepare(api);
    const rollout = {
      api,
      daemonSet,
      image,
      stanza: await defaultStanza(outputs.manifests, false),
      tokenSeconds: TOKEN_SECONDS || DAY_SECONDS,
    };
    for (let index = 0; index < NODES; index++) nodes.push(new ScaleNode(index, place, rollout));
    const simulation = new Simulation(api, new Traffic(api.admin.port), nodes);
    await simulate(simulation, api, nodes).finally(async () => {
      const requests = await readRequests(log);
      process.stdout.write(options.json ? json(simulation.phases, requests) : table(simulation.phases, requests));
    });
    if (!options.json) await tell(api, nodes);
    const wide = tooMuch(await readRequests(log));
    if (wide.length > 0) throw new Error(`lists of more than a node's objects: ${wide.join(", ")}`);
  } catch (error) {
    const node = nodes.find(({ hasEnded }) => hasEnded) ?? nodes[0];
    if (node !== undefined) say(`${node.name}:\n${node.log}`);
    throw error;
  } finally {
    for (const node of nodes) node.kill();
    await api.close();
    await sleep(500);
    rmSync(place, { recursive: true, force: true, maxRetries: 5 });
  }
}

main().catch((error) => {
  say(reasonOf(error));
  process.exitCode = 1;
});
