import { StartupTaint } from "../../installer/taint";
import { httpsTransport } from "../../kubernetes/transport";
import { RunningController } from "../support/controllers";
import { ended, failing, NODE, passed } from "../support/meshed-pod";
import { PodsInApi } from "../support/pods-in-api";
import { buildPrograms } from "../support/program";
import { type RealApi, realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { until } from "../support/until";

const KEY = "linkerd.io/cni-not-ready";
const DELETED = "LinkerdCNINotConfigured";
const SUSPENDED = "LinkerdCNIRepairSuspended";

interface Node {
  readonly spec: { readonly taints?: readonly { readonly key: string; readonly effect: string }[] };
}

suite("the built controllers with a real API server, with the chart's rights and no more", realApiMissing(), () => {
  let cluster: PodsInApi;
  let api: RealApi;
  const running: RunningController[] = [];

  beforeAll(async () => {
    [cluster] = await Promise.all([PodsInApi.start(), buildPrograms()]);
    api = cluster.api;
  });

  afterEach(async () => {
    for (const controller of running.splice(0)) await controller.stop();
  });

  afterAll(() => api.close());

  /** Starts a controller that is stopped after the test. */
  async function control(options: Parameters<typeof RunningController.start>[1] = {}): Promise<RunningController> {
    const controller = await RunningController.start(api, { ...options, isBuilt: true });
    running.push(controller);
    return controller;
  }

  test("broken pods are deleted once, and the Event is there to read", async () => {
    const shop = await cluster.namespace("shop");
    await shop.start("early", failing);
    await shop.start("healthy", passed);
    await shop.start("failed-days-ago", ended, { spec: { restartPolicy: "Never" } });
    const controller = await control();
    await until("the first", async () => (await shop.events()).length === 1);
    await shop.start("late", failing);
    await until("the late one", async () => (await shop.events()).length === 2);
    expect(await shop.present()).toEqual(["failed-days-ago", "healthy"]);
    const events = await shop.events();
    expect(events.map(({ regarding }) => regarding.name).sort()).toEqual(["early", "late"]);
    expect(new Set(events.map(({ reason, action }) => `${reason} ${action}`))).toEqual(
      new Set([`${DELETED} Deleting`]),
    );
    expect(await controller.metric("events_publish_errors_total")).toBe(0);
    expect(controller.log.join("")).not.toContain("warn");
  });

  const onNode = (name: string) => ({
    args: ["--deletions-per-second=100"],
    env: { LINKERD_CNI_REPAIR_CONTROLLER_NODE_NAME: name },
  });

  test("owners whose pods never work are suspended after three rounds, and others are still repaired", async () => {
    const vain = await cluster.namespace("vain");
    const spec = { nodeName: "node-a" };
    const controller = await control(onNode("node-a"));
    for (const [index, reason] of [DELETED, DELETED, DELETED, SUSPENDED].entries()) {
      await vain.start(`never-${index}`, failing, { owner: "never", spec });
      await until("a decision", async () => (await vain.told(reason)).includes(`never-${index}`));
    }
    expect(await controller.metric("suspended_owners")).toBe(1);
    await vain.start("other", failing, { spec });
    await until("another owner's pod", async () => (await vain.told(DELETED)).includes("other"));
    expect(await vain.present()).toEqual(["never-3"]);
    expect(await vain.told(SUSPENDED)).toEqual(["never-3"]);
    // A new pod that works shows that the cause is gone.
    await vain.start("works", passed, { owner: "never", spec });
    await until("the pod that waited", async () => (await vain.told(DELETED)).includes("never-3"));
    expect(await controller.metric("suspended_owners")).toBe(0);
  });

  test("on nodes that join one by one pods are repaired, since their replacements work", async () => {
    const joining = await cluster.namespace("joining");
    for (const nodeName of ["node-a", "node-b", "node-c", "node-d"]) {
      await control(onNode(nodeName));
      const early = [`agent-${nodeName}`, `web-${nodeName}`] as const;
      await joining.start(early[0], failing, { owner: "agent", kind: "DaemonSet", spec: { nodeName } });
      await joining.start(early[1], failing, { owner: "web", spec: { nodeName } });
      await until("both repairs", async () => {
        const told = await joining.told(DELETED);
        return early.every((name) => told.includes(name));
      });
      await joining.start(`good-${nodeName}`, passed, { owner: "web" });
    }
    expect(await joining.told(SUSPENDED)).toEqual([]);
  });

  test("nothing is lost during an outage of the API server, and after it the pods are listed again", async () => {
    const away = await cluster.namespace("away");
    await away.start("healthy", passed);
    const controller = await control();
    await controller.ready();
    // Moves the end of history on from the watch's place, which is forgotten then.
    for (let index = 0; index < 5; index++) {
      const body = { metadata: { generateName: "other-" } };
      await api.json({ method: "POST", path: "/api/v1/namespaces/away/configmaps", body });
    }
    await api.down();
    await api.compact();
    await until("errors", async () => (await controller.metric("watch_errors_total")) >= 2);
    await api.up();
    await away.start("afterwards", failing);
    await until("the deletion", async () => (await away.present()).join() === "healthy");
    // The answer to the deletion may come after its event.
    await until("its count", async () => (await controller.metric("pods_deleted_total")) > 0);
    expect(await controller.metric("pods_deleted_total")).toBe(1);
    expect(controller.log.join("")).toContain("watch of /api/v1/pods: 410");
  });

  test("a new node is tainted at birth, and the installer removes that taint and no other", async () => {
    const path = "/api/v1/nodes";
    const other = { key: "example.com/gpu", effect: "NoSchedule" };
    const taints = async (name: string) => (await api.json<Node>({ path: `${path}/${name}` })).spec.taints ?? [];
    const keys = async (name: string) => (await taints(name)).map(({ key }) => key);
    const create = (name: string, os: string, given: readonly object[]) => {
      const labels = { "kubernetes.io/os": os };
      const body = { metadata: { name, labels }, spec: given.length === 0 ? {} : { taints: given } };
      return api.json({ method: "POST", path, body });
    };
    // A policy takes effect after a moment.
    let tries = 0;
    await until("the policy", async () => {
      const name = `probe-${tries++}`;
      await create(name, "linux", []);
      return (await keys(name)).includes(KEY);
    });
    await create(NODE, "linux", [other]);
    await create("windows", "windows", []);
    expect(await keys(NODE)).toEqual(expect.arrayContaining([other.key, KEY]));
    expect(await keys("windows")).not.toContain(KEY);

    const before = await taints(NODE);
    const log: string[] = [];
    const write = (message: string) => void log.push(message);
    const startup = new StartupTaint({
      connect: () => httpsTransport(api.server),
      node: NODE,
      key: KEY,
      clock: { now: () => 0, random: () => 1 },
      log: { trace: write, debug: write, info: write, warn: write, error: write },
    });
    await startup.lift();
    expect(await taints(NODE)).toEqual(before.filter(({ key }) => key !== KEY));
    expect(log).toEqual([`removed taint ${KEY} from node ${NODE}: pods that start now are chained`]);
  });
});
