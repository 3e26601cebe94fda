import { RunningController } from "../../support/controllers";
import { failing, meshedPod, ownedBy, passed } from "../../support/meshed-pod";
import { type PodLike, PodsApi } from "../../support/pods-api";
import { until } from "../../support/until";

const NODES = ["node-1", "node-2", "node-3", "node-4"];

let api: PodsApi;
let running: RunningController[];
let made: number;

beforeEach(async () => {
  [running, made] = [[], 0];
  api = await PodsApi.start();
});

afterEach(async () => {
  for (const controller of running.splice(0)) await controller.stop();
  api.close();
});

async function start(nodeName: string): Promise<RunningController> {
  const env = { LINKERD_CNI_REPAIR_CONTROLLER_NODE_NAME: nodeName };
  const controller = await RunningController.start(api, { env, args: ["--deletions-per-second=100"] });
  running.push(controller);
  return controller;
}

/** A new pod of an owner's on a node. */
const podOf = (metadata: ReturnType<typeof ownedBy>, nodeName: string, status: object) =>
  meshedPod(`pod-${made++}`, { metadata, spec: { nodeName }, status });
const nodeOf = ({ spec }: PodLike) => spec.nodeName;
const told = (reason: string) => api.events.filter((event) => event.reason === reason);
const suspended = () => told("LinkerdCNIRepairSuspended");
const decided = (count: number) => until("a decision", () => api.events.length === count);

/** On each of the nodes in turn a pod of an owner's starts without its redirect, and something is decided about it. */
async function joinOneByOne(owner: ReturnType<typeof ownedBy>): Promise<void> {
  for (const [index, node] of NODES.entries()) {
    await start(node);
    api.put(podOf(owner, node, failing));
    await decided(index + 1);
  }
}

test("four nodes join, on each the pod of a DaemonSet is repaired once, and nothing is suspended", async () => {
  const owner = ownedBy("agent", "DaemonSet");
  api.afterDelete = (pod) => api.put(podOf(owner, nodeOf(pod), passed));
  await joinOneByOne(owner);
  expect(api.deletions).toHaveLength(4);
  expect(suspended()).toEqual([]);
});

test("pods of a ReplicaSet are repaired on four new nodes in a row, as the pods in their place are good", async () => {
  const owner = ownedBy("web");
  api.afterDelete = () => api.put(podOf(owner, "node-5", passed));
  await joinOneByOne(owner);
  expect(api.deletions).toHaveLength(4);
  expect(suspended()).toEqual([]);
});

test("a deleted pod that the watch still shows does not count as a new one", async () => {
  let asked = 0;
  // Each second time the answer of the time before was lost.
  api.refuseDelete = () => (asked++ % 2 === 0 ? 500 : 404);
  const pod = podOf(ownedBy("web"), "node-1", failing);
  api.put(pod);
  const controller = await RunningController.start(api, { speed: 100 });
  running.push(controller);
  for (let attempt = 1; attempt <= 4; attempt++) {
    await until("two attempts", () => asked >= 2 * attempt);
    api.put(pod);
  }
  api.refuseDelete = () => undefined;
  await decided(1);
  expect(api.events).toMatchObject([{ reason: "LinkerdCNINotConfigured" }]);
  expect(await controller.metric("suspensions_total")).toBe(0);
});
