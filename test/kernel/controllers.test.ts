import { App, Chart } from "cdk8s";
import { LinkerdCni } from "../../constructs/linkerd-cni";
import { StartupTaint } from "../../installer/node-taint";
import { httpsTransport } from "../../kubernetes/client";
import { RunningController, until } from "../support/controllers";
import { ended, failing, meshedPod, NODE, ownedBy, passed } from "../support/meshed-pod";
import { type ApiObject, RealApi, realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";

const KEY = "linkerd.io/cni-not-ready";

/** What of the chart the controllers' rights and the nodes' taints are made of. */
const NEEDED = /^(ClusterRole|MutatingAdmissionPolicy)(Binding)?$/;

interface Event {
  readonly reason: string;
  readonly action: string;
  readonly regarding: { readonly name: string };
}

interface Node {
  readonly spec: { readonly taints?: readonly { readonly key: string; readonly effect: string }[] };
}

suite("controllers with a real API server, with the chart's rights and no more", realApiMissing(), () => {
  let api: RealApi;
  let controller: RunningController | undefined;

  beforeAll(async () => {
    api = await RealApi.start("system:serviceaccount:linkerd-cni:linkerd-cni");
    const chart = new Chart(new App(), "chart");
    new LinkerdCni(chart, "cni", {
      rbac: { minimal: true },
      repairController: { enabled: true },
      nodeTaint: { enabled: true, admissionPolicy: "v1beta1" },
    });
    await api.create(...(chart.toJson() as ApiObject[]).filter(({ kind }) => NEEDED.test(kind)));
    await api.json({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: "shop" } } });
  }, 90_000);

  afterEach(async () => {
    await controller?.stop();
    controller = undefined;
  });

  afterAll(() => api.close());

  const pods = "/api/v1/namespaces/shop/pods";

  /** Creates a pod, and gives it the status that a kubelet would. */
  async function start(name: string, status: object, spec: object = {}): Promise<void> {
    const { metadata, spec: base } = meshedPod(name, { metadata: ownedBy(name), spec });
    const { uid: _, ...given } = metadata;
    const containers = (list: unknown) => (list as { name: string }[]).map((each) => ({ ...each, image: "none" }));
    const body = {
      metadata: given,
      spec: {
        ...base,
        containers: containers(base["containers"]),
        initContainers: containers(base["initContainers"]),
      },
    };
    await api.json({ method: "POST", path: pods, body });
    await say(name, status);
  }

  async function say(name: string, status: object): Promise<void> {
    const filled = JSON.parse(JSON.stringify(status), (_, value) =>
      typeof value === "object" && value !== null && "name" in value
        ? { image: "none", imageID: "none", ready: false, restartCount: 1, ...value }
        : value,
    );
    const contentType = "application/merge-patch+json";
    await api.json({ method: "PATCH", path: `${pods}/${name}/status`, body: { status: filled }, contentType });
  }

  const present = async () =>
    (await api.json<{ items: { metadata: { name: string } }[] }>({ path: pods })).items.map(
      ({ metadata }) => metadata.name,
    );
  const told = async () =>
    (await api.json<{ items: Event[] }>({ path: "/apis/events.k8s.io/v1/namespaces/shop/events" })).items;

  test("broken pods are deleted once, and the Event is there to read", async () => {
    await start("early", failing);
    await start("healthy", passed);
    await start("job", ended, { restartPolicy: "Never" });
    controller = await RunningController.start(api);
    await until("the first two", async () => (await told()).length === 2);
    await start("late", failing);
    await until("the late one", async () => (await told()).length === 3);
    expect(await present()).toEqual(["healthy"]);
    const events = await told();
    expect(events.map(({ regarding }) => regarding.name).sort()).toEqual(["early", "job", "late"]);
    expect(new Set(events.map(({ reason, action }) => `${reason} ${action}`))).toEqual(
      new Set(["LinkerdCNINotConfigured Deleting"]),
    );
    expect(await controller.metric("events_publish_errors_total")).toBe(0);
  });

  test("nothing is lost while the API server is away", async () => {
    controller = await RunningController.start(api, { speed: 5 });
    await controller.ready();
    await api.down();
    await until("errors", async () => ((await controller?.metric("watch_errors_total")) ?? 0) >= 2);
    await api.up();
    await start("afterwards", failing);
    await until("the deletion", async () => (await present()).join() === "healthy", 30);
    expect(await controller.metric("pods_deleted_total")).toBe(1);
  }, 90_000);

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
    // A policy takes a moment to be in force.
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
      log: { trace: write, debug: write, info: write, warn: write, error: write },
    });
    await startup.lift();
    expect(await taints(NODE)).toEqual(before.filter(({ key }) => key !== KEY));
    expect(log).toEqual([`removed taint ${KEY} from node ${NODE}: pods that start now are chained`]);
  }, 30_000);
});
