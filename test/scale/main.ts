/**
 * `npm run scale`: the programs of many nodes, each a process, against one real API server and etcd. Prints their requests
 * and the cost. Needs root, and runs in its own network namespace, which package.json makes.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { App, Chart } from "cdk8s";
import { outputs } from "../../build/paths";
import { reasonOf } from "../../cni/errors";
import { LinkerdCni } from "../../constructs/linkerd-cni";
import { SMALL_PLUGIN } from "../kernel/installer-node";
import { defaultStanza } from "../support/default-stanza";
import { buildPrograms } from "../support/program";
import { type ApiObject, RealApi, realApiMissing } from "../support/real-api";
import { until } from "../support/until";
import { AUDIT_POLICY, readRequests, tooMuch } from "./audit";
import { each } from "./each";
import { NAMESPACE, ScaleNode } from "./nodes";
import { kibibytes, Simulation, say, Traffic } from "./phases";
import { json, table } from "./report";
import { type Added, startPods } from "./starts";

const { values: options } = parseArgs({
  options: {
    nodes: { type: "string", default: "1000" },
    "start-seconds": { type: "string", default: "60" },
    "rest-seconds": { type: "string", default: "180" },
    "down-seconds": { type: "string", default: "300" },
    "back-seconds": { type: "string", default: "120" },
    /** Prints JSON in place of a table. */
    json: { type: "boolean", default: false },
    waves: { type: "string", default: "10" },
    "pods-per-node": { type: "string", default: "10" },
    /** Starts of meshed pods on each node. */
    starts: { type: "string", default: "10" },
    /** File that also gets what is printed. */
    out: { type: "string" },
  },
});
const NODES = Number(options.nodes);
const START_MS = Number(options["start-seconds"]) * 1000;
const REST_MS = Number(options["rest-seconds"]) * 1000;
const DOWN_MS = Number(options["down-seconds"]) * 1000;
const BACK_MS = Number(options["back-seconds"]) * 1000;
const WAVES = Number(options.waves);
const PODS = Number(options["pods-per-node"]);
const STARTS = Number(options.starts);
/** As often as the kubelet asks whether a pod is ready. */
const READY_MS = 5_000;
/** Requests of the simulation itself that are under way at once. */
const PARALLEL = 16;

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
    const labels = { "kubernetes.io/os": "linux" };
    await api.create({ apiVersion: "v1", kind: "Node", metadata: { name, labels } } as ApiObject);
    // A newer one reads a folder of drop-ins, which an installer tries: nothing reads it here.
    const status = { nodeInfo: { containerRuntimeVersion: "containerd://1.7.29" } };
    await api.request({
      method: "PATCH",
      path: `/api/v1/nodes/${name}/status`,
      body: { status },
      contentType: "application/merge-patch+json",
    });
  });
  const pods = names.flatMap((node, at) => Array.from({ length: PODS }, (_, index) => ({ node, at, index })));
  await each(pods, PARALLEL, ({ node, at, index }) =>
    api.create(meshedPod(`${node}-${index}`, node, markOf(at, index))),
  );
  return metadata.uid;
}

/** A port that, of the pods that start one after another, only this one does not redirect. */
const markOf = (node: number, pod: number) => 10_000 + ((node * PODS + pod) % 50_000);
const annotationsOf = (mark: number) => ({
  "linkerd.io/proxy-version": "edge-26.5.1",
  "config.linkerd.io/skip-inbound-ports": String(mark),
});

/** Injected by `linkerd inject --manual`: its namespace may have settings, too, so that a start takes two requests. */
const meshedPod = (name: string, nodeName: string, mark: number) =>
  ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: "shop",
      labels: { "linkerd.io/control-plane-ns": "linkerd" },
      annotations: annotationsOf(mark),
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

/** All phases. @returns results that have no place in the table */
async function simulate(simulation: Simulation, setting: Setting): Promise<readonly string[]> {
  const { api, nodes } = setting;
  await simulation.phase("start", async () => {
    const begun = Date.now();
    await each([...nodes.entries()], PARALLEL, async ([index, node]) => {
      await sleep(Math.max(0, begun + (index * START_MS) / NODES - Date.now()));
      await node.start();
    });
    await until("all nodes to have the plugin", () => nodes.every(({ isInstalled }) => isInstalled));
  });
  await sleep(10_000);
  await simulation.phase("rest", () => sleep(REST_MS), NODES);
  await simulation.phase("rollout", async () => {
    const size = Math.ceil(NODES / WAVES);
    for (let first = 0; first < NODES; first += size) {
      const wave = nodes.slice(first, first + size);
      await each(wave, wave.length, (node) => node.replace(() => sleep(READY_MS)));
    }
  });
  const told = [`before the outage ${await refusals(api)}`];
  await simulation.phase("API server down", async () => {
    await api.down();
    await sleep(DOWN_MS);
  });
  await simulation.phase("API server back", async () => {
    await api.up();
    await sleep(BACK_MS);
  });
  if (STARTS > 0) told.push(await podStarts(simulation, setting));
  told.push(...memory(nodes));
  return told;
}

interface Setting {
  readonly api: RealApi;
  readonly nodes: readonly ScaleNode[];
  /** Parent of all directories. */
  readonly place: string;
}

/** Starts pods on all nodes at rest. @returns which ways their look-ups took, and how long the ADDs took */
async function podStarts(simulation: Simulation, { nodes, place }: Setting): Promise<string> {
  const pods = Array.from({ length: NODES * STARTS }, (_, at) => {
    const [node, pod] = [at % NODES, Math.floor(at / NODES) % PODS];
    const { stanza, runDir } = nodes[node] as ScaleNode;
    const mark = markOf(node, pod);
    return { stanza, runDir, name: `node-${node}-${pod}`, annotations: annotationsOf(mark), mark };
  });
  let added: readonly Added[] = [];
  await simulation.phase("pod starts", async () => {
    added = await startPods(pods, PARALLEL, join(place, "starts"));
  });
  const calls = nodes.flatMap((node) => node.calls);
  if (calls.length !== pods.length) throw new Error(`${pods.length} ADDs, but ${calls.length} records of calls`);
  const ways = new Map<string, number>();
  for (const { lookup = "none", reason: why, requests } of calls) {
    const reason = why === undefined ? "" : `, since ${why.replace(/\d+/g, "N")}`;
    const way = `${requests} requests, look-up ${lookup}${reason}`;
    ways.set(way, (ways.get(way) ?? 0) + 1);
  }
  const counts = [...ways].map(([way, count]) => `${count} ADDs: ${way}`).join("; ");
  return `pod starts: ${counts}; ${summary(added)}`;
}

function summary(added: readonly Added[]): string {
  const sorted = added.map(({ tookMs }) => tookMs).sort((one, other) => one - other);
  const at = (part: number) => (sorted[Math.floor(part * (sorted.length - 1))] ?? 0).toFixed(1);
  const failures = added.flatMap(({ failure }) => failure ?? []);
  if (failures.length > 0) process.exitCode = 1;
  const failed = failures.length === 0 ? "none failed" : `${failures.length} failed, the first so: ${failures[0]}`;
  return `an ADD took ${at(0.5)} ms in the median, ${at(0.99)} ms at the 99th percentile; ${failed}`;
}

/** The programs' memory. */
function memory(nodes: readonly ScaleNode[]): readonly string[] {
  const sizes = nodes.slice(0, 20).map(({ pids }) => pids.map((pid) => kibibytes(`/proc/${pid}/smaps_rollup`, "Pss")));
  return ["installer", "repair controller"].map((program, index) => {
    const kB = sizes.map((each) => each[index] ?? 0).sort((one, other) => one - other);
    return `${program}: ${((kB[kB.length >> 1] ?? 0) / 1024).toFixed(1)} MiB (PSS, median)`;
  });
}

/** What API Priority and Fairness has refused since the API server started. */
async function refusals(api: RealApi): Promise<string> {
  const { body } = await api.request({ path: "/metrics" });
  const refused = body.split("\n").filter((line) => /^apiserver_flowcontrol_rejected_requests_total/.test(line));
  return `refused by API Priority and Fairness: ${refused.join(", ") || "none"}`;
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
    "--audit-log-maxsize=10000",
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
    };
    for (let index = 0; index < NODES; index++) nodes.push(new ScaleNode(index, place, rollout));
    const simulation = new Simulation(api, new Traffic(api.admin.port), nodes);
    const print = async (more: readonly string[]) => {
      const requests = await readRequests(log);
      const text = `${table(simulation.phases, requests)}\n${more.map((line) => `${line}\n`).join("")}`;
      process.stdout.write(options.json ? json(simulation.phases, requests) : text);
      if (options.out !== undefined) writeFileSync(options.out, text);
    };
    const told = await simulate(simulation, { api, nodes, place }).catch(async (error) => {
      await print([reasonOf(error)]);
      throw error;
    });
    await print([...told, `after it ${await refusals(api)}`]);
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
