import { type AddressInfo, createServer, type Server } from "node:net";
import { RunningController } from "../../support/controllers";
import { bare, ended, failing, meshedPod, ownedBy, passed, running } from "../../support/meshed-pod";
import { type PodLike, PodsApi } from "../../support/pods-api";
import { until } from "../../support/until";

let api: PodsApi;
let controller: RunningController | undefined;

beforeEach(async () => {
  api = await PodsApi.start();
});

afterEach(async () => {
  await controller?.stop();
  controller = undefined;
  api.close();
});

const deleted = () => api.deletions.map(({ name }) => name).sort();

/** Puts a broken pod and waits until it is deleted: everything that the controller was told before has been handled. */
async function marker(): Promise<void> {
  api.put(meshedPod("marker", { status: failing }));
  await until("the marker", () => api.events.some(({ regarding }) => regarding.name === "marker"));
}

test("acts once on each broken pod, present or new, and never on others", async () => {
  const publications = async () => controller?.metric("events_publish_latency_seconds_count");
  api.put(meshedPod("broken", { status: failing }));
  api.put(meshedPod("failed-days-ago", { status: ended, spec: { restartPolicy: "Never" } }));
  api.put(meshedPod("evicted", { status: { ...failing, phase: "Failed" } }));
  api.put(meshedPod("healthy", { status: passed }));
  api.put(meshedPod("done", { status: { phase: "Succeeded" } }));
  api.put(meshedPod("elsewhere", { status: failing, spec: { nodeName: "node-2" } }));
  api.put(meshedPod("unmeshed", { status: failing, metadata: { labels: {} } }));
  controller = await RunningController.start(api);
  await until("the first", () => api.events.length === 1);
  expect(deleted()).toEqual(["broken"]);

  const late = meshedPod("late", { status: {} });
  api.put(late);
  api.put({ ...late, status: { ...late.status, ...failing } });
  api.put(meshedPod("late-healthy", { status: passed }));
  await until("the late one", () => api.events.length === 2);
  await marker();
  expect(deleted()).toEqual(["broken", "late", "marker"]);
  await until("the last Event's answer", async () => (await publications()) === 3);
  expect(await controller.metric("pods_deleted_total")).toBe(3);
  expect(await controller.metric("pods_delete_latency_seconds_count")).toBe(3);
  expect(await controller.metric("queue_overflow_total")).toBe(0);
});

test("does not delete a pod without a controller or a completed pod, and reports each", async () => {
  controller = await RunningController.start(api);
  await controller.ready();
  const step = { restartPolicy: "Never" };
  const pods = [
    meshedPod("bare", { metadata: bare }),
    meshedPod("bare-step", { metadata: bare, spec: step }),
    meshedPod("job", { metadata: ownedBy("nightly", "Job"), spec: step }),
    meshedPod("workflow", { metadata: ownedBy("etl", "Workflow"), spec: { restartPolicy: "OnFailure" } }),
  ];
  for (const pod of pods) api.put(pod);
  await until("the pods", () => api.watching === 1);
  for (const pod of pods) {
    const isStep = pod.spec["restartPolicy"] === "Never";
    for (let run = 1; run <= 2; run++) api.put({ ...pod, status: isStep ? ended : failing });
  }
  await until("the Events", () => api.events.length === 4);
  await marker();
  expect(deleted()).toEqual(["marker"]);
  const notes = api.events.map(({ regarding, type, note }) => [regarding.name, type, note.split("; ")[1]]).sort();
  const back = "no controller would bring it back: delete it and create it again";
  expect(notes).toEqual([
    ["bare", "Warning", `it is not deleted because ${back}`],
    ["bare-step", "Warning", "no controller brings it back: delete it and create it again"],
    ["job", "Warning", "Job nightly decides whether a new pod takes its place"],
    ["marker", "Normal", expect.anything()],
    ["workflow", "Warning", `it is not deleted because ${back}`],
  ]);
  expect(await controller.metric("pods_left_total")).toBe(4);
  expect(await controller.metric("pods_broken")).toBe(2);
});

test("can delete a pod without a controller, as linkerd's controller does", async () => {
  api.put(meshedPod("bare", { status: failing, metadata: bare }));
  controller = await RunningController.start(api, { args: ["--delete-unowned=true"] });
  await until("the deletion", () => api.deletions.length === 1);
  expect(deleted()).toEqual(["bare"]);
});

test("deletes without grace and by UID, and reports it as linkerd's controller does", async () => {
  const pod = meshedPod("web-1", { status: failing, metadata: ownedBy("web") });
  api.put(pod);
  controller = await RunningController.start(api);
  await until("the Event", () => api.events.length === 1);
  const { uid } = pod.metadata;
  expect(api.deletions[0]?.body).toMatchObject({ gracePeriodSeconds: 0, preconditions: { uid } });
  expect(api.events[0]).toMatchObject({
    apiVersion: "events.k8s.io/v1",
    reason: "LinkerdCNINotConfigured",
    action: "Deleting",
    type: "Normal",
    reportingController: "linkerd-cni-repair-controller",
    reportingInstance: "linkerd-cni-x7k2p",
    regarding: { apiVersion: "v1", kind: "Pod", namespace: "shop", name: "web-1", uid },
    related: { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web" },
    metadata: { namespace: "shop" },
  });
  expect(api.events[0]?.eventTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
});

test("does not delete a new pod with the name of the broken one", async () => {
  const pod = meshedPod("web-0", { status: failing });
  api.put(pod);
  controller = await RunningController.start(api, { speed: 20 }, ({ installer }) => {
    installer.ready = false;
  });
  await controller.ready();
  api.isWatchDown = true;
  api.cut();
  api.put(meshedPod("web-0", { status: passed }));
  controller.installer.ready = true;
  await until("an attempt", () => api.count(/^\/api\/v1\/namespaces\/shop\/pods\/web-0$/) > 0);
  api.isWatchDown = false;
  await until("the watch", () => api.watching === 1);
  await marker();
  expect(deleted()).toEqual(["marker"]);
  expect([...api.pods.keys()]).toEqual(["shop/web-0"]);
});

test("deletes nothing before the node's installer is ready", async () => {
  api.put(meshedPod("broken", { status: failing }));
  const mended = meshedPod("mended", { status: failing });
  api.put(mended);
  controller = await RunningController.start(api, { speed: 20 }, ({ installer }) => {
    installer.ready = false;
  });
  const { installer } = controller;
  await until("some questions", () => installer.asked >= 3);
  expect(api.deletions).toEqual([]);
  expect(await controller.metric("installer_ready")).toBe(0);
  expect(await controller.metric("pods_broken")).toBe(2);
  api.put({ ...mended, status: passed });
  await until("the change", async () => (await controller?.metric("pods_broken")) === 1);
  installer.ready = true;
  await until("the deletion", () => api.deletions.length === 1);
  expect(deleted()).toEqual(["broken"]);
  expect(await controller.metric("installer_ready")).toBe(1);
});

const controlPlane = (name: string, namespace = "linkerd") => {
  const labels = { "linkerd.io/control-plane-ns": "linkerd", "linkerd.io/control-plane-component": "proxy-injector" };
  return meshedPod(name, { metadata: { namespace, labels }, status: failing });
};

describe("while new pods might get no proxy", () => {
  const cases: readonly (readonly [string, (stub: PodsApi) => void, string])[] = [
    [
      "the injector has no endpoint, and its policy is Ignore",
      (stub) => (stub.injector = { failurePolicy: "Ignore", isReady: false }),
      "the webhook linkerd-proxy-injector.linkerd.io has no ready endpoint and failurePolicy Ignore",
    ],
    [
      "there is no injector",
      (stub) => (stub.injector = undefined),
      "there is no MutatingWebhookConfiguration with label linkerd.io/control-plane-component=proxy-injector",
    ],
    [
      "the controller may not read it",
      (stub) => (stub.mayReadInjector = false),
      "list mutatingwebhookconfigurations: 403: Forbidden",
    ],
  ];
  test.each(cases)("only pods of the control plane are deleted: %s", async (_, prepare, problem) => {
    prepare(api);
    api.put(meshedPod("broken", { status: failing }));
    api.put(controlPlane("tenant", "shop"));
    const started = await RunningController.start(api, { speed: 20 });
    controller = started;
    await until("some questions", () => api.count(/mutatingwebhookconfigurations/) >= 3);
    expect(deleted()).toEqual([]);
    api.put(controlPlane("injector"));
    await until("its deletion", () => deleted().includes("injector"));
    await until("more questions", () => api.count(/mutatingwebhookconfigurations/) >= 6);
    expect(deleted()).toEqual(["injector"]);
    const said = started.log.filter((line) => line.includes(`${problem}: only pods of the control plane are deleted`));
    expect(said).toHaveLength(1);
    api.injector = { failurePolicy: "Ignore", isReady: true };
    api.mayReadInjector = true;
    await until("the others", () => deleted().length === 3);
    expect(started.log.join("")).toContain(`no longer true: ${problem}`);
  });
});

test("the API server creates no pod without the injector if its policy is Fail", async () => {
  api.injector = { failurePolicy: "Fail", isReady: false };
  api.put(meshedPod("broken", { status: failing }));
  controller = await RunningController.start(api);
  await until("the deletion", () => deleted().includes("broken"));
});

test("does not wait for an installer without a health port", async () => {
  api.put(meshedPod("broken", { status: failing }));
  controller = await RunningController.start(api, { speed: 20, args: ["--installer-ready="] }, ({ installer }) => {
    installer.ready = false;
  });
  await until("the deletion", () => api.deletions.length === 1);
  expect(controller.installer.asked).toBe(0);
});

test("never deletes faster than the rate, however many fail at once", async () => {
  for (let index = 0; index < 60; index++) api.put(meshedPod(`pod-${index}`, { status: failing }));
  const at: number[] = [];
  const speed = 30;
  api.afterDelete = () => at.push((performance.now() * speed) / 1000);
  const args = ["--deletions-per-second=2", "--deletion-burst=10"];
  controller = await RunningController.start(api, { speed, args });
  await until("all deletions", () => api.deletions.length === 60);
  expect(new Set(deleted()).size).toBe(60);
  // However long a stretch is, it holds a burst and what the rate allows meanwhile; 5 s for the way of a request, on
  // the fast clock.
  for (let first = 0; first < at.length; first++) {
    for (let last = first; last < at.length; last++) {
      const seconds = (at[last] ?? 0) - (at[first] ?? 0);
      expect(last - first + 1).toBeLessThanOrEqual(10 + 2 * (seconds + 5) + 1);
    }
  }
  expect((at.at(-1) ?? 0) - (at[0] ?? 0)).toBeGreaterThan(20);
});

test("retries a refused deletion with back-off", async () => {
  let refusals = 0;
  api.refuseDelete = () => (refusals++ < 3 ? 500 : undefined);
  api.put(meshedPod("broken", { status: failing }));
  controller = await RunningController.start(api, { speed: 50 });
  await until("the deletion", () => api.deletions.length === 1);
  expect(refusals).toBe(4);
  expect(await controller.metric("pods_delete_errors_total")).toBe(3);
  expect(controller.log.join("")).toMatch(/pod shop\/broken could not be deleted: .*500/);
});

test("a deleted pod that the watch still shows does not count as a new one", async () => {
  let asked = 0;
  // Each second time the answer of the time before was lost.
  api.refuseDelete = () => (asked++ % 2 === 0 ? 500 : 404);
  const pod = meshedPod("broken", { metadata: ownedBy("web"), status: failing });
  api.put(pod);
  controller = await RunningController.start(api, { speed: 100 });
  for (let attempt = 1; attempt <= 4; attempt++) {
    await until("two attempts", () => asked >= 2 * attempt);
    api.put(pod);
  }
  api.refuseDelete = () => undefined;
  await until("a decision", () => api.events.length === 1);
  expect(api.events).toMatchObject([{ reason: "LinkerdCNINotConfigured" }]);
  expect(await controller.metric("suspensions_total")).toBe(0);
});

describe("an audit of pods without a validator", () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  /** Listens on a port: as the proxy does on its own, and on each that is redirected to it. */
  async function listen(host = "127.0.0.1", port = 0): Promise<number> {
    const server = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(port, host, resolve));
    servers.push(server);
    return (server.address() as AddressInfo).port;
  }

  const bare = (name: string, podIP: string, metadata: Partial<PodLike["metadata"]>) =>
    meshedPod(name, { status: { ...running, podIP }, spec: { initContainers: [] }, metadata });

  /** Runs the controller with one pod that has a proxy and no validator. */
  async function audit(proxyPort: number, redirected: readonly number[], metadata: Partial<PodLike["metadata"]> = {}) {
    const linkerd = { "incoming-proxy-port": proxyPort, "ports-to-redirect": redirected };
    const env = { CNI_NETWORK_CONFIG: JSON.stringify({ linkerd }) };
    api.put(bare("bare", "127.0.0.1", metadata));
    controller = await RunningController.start(api, { speed: 100, env });
    await until("the audit", () => api.count(/^\/api\/v1\/namespaces\/shop$/) >= 1);
    return controller;
  }

  /** Waits until a pod that is outside the mesh was found: those before it have been audited. */
  async function found(name: string, proxyPort: number): Promise<void> {
    await listen("127.0.0.2", proxyPort);
    api.put(bare(name, "127.0.0.2", ownedBy(name)));
    await until("its Event", () => api.events.some(({ regarding }) => regarding.name === name));
  }

  test("reports them once, without deleting them", async () => {
    const port = await listen();
    const audited = await audit(port, []);
    await until("the Event", () => api.events.length === 1);
    expect(api.events[0]).toMatchObject({ reason: "LinkerdCNINotRedirected", action: "Auditing", type: "Warning" });
    await found("next", port);
    expect(api.events.map(({ regarding }) => regarding.name)).toEqual(["bare", "next"]);
    expect(api.deletions).toEqual([]);
    expect(await audited.metric("pods_not_redirected")).toBe(2);
  });

  test("ignores those whose connections are redirected", async () => {
    const port = await listen();
    await audit(port, [await listen()], ownedBy("web"));
    await found("next", port);
    expect(api.events).toHaveLength(1);
  });

  test("ignores those whose proxy does not answer", async () => {
    const port = await listen();
    servers.splice(0)[0]?.close();
    await audit(port, [], ownedBy("web"));
    await found("next", port);
    expect(api.events).toHaveLength(1);
  });
});

test("answers on its admin port", async () => {
  api.down = true;
  controller = await RunningController.start(api, { speed: 50 });
  await until("the port", async () => (await controller?.ask("/live"))?.status === 200);
  expect((await controller.ask("/ready")).status).toBe(503);
  expect((await controller.ask("/other")).status).toBe(404);
  api.down = false;
  await controller.ready();
});
