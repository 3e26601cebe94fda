import { readFile } from "node:fs/promises";
import { rounds } from "../support/rounds";
import { until } from "../support/until";
import { NODE } from "./addresses";
import { powerOff, powerOn } from "./faults";
import { INJECT, injectorAvailable, injectorWebhook, installInjector } from "./injector";
import { CONFIGURATION, cleanDisk, configure } from "./node";
import { pod, podAnnotations, podSpec } from "./pods";
import { clusterSuite } from "./suite";

const KEY = "linkerd.io/cni-not-ready";
/** Pods that start after a boot and before the installer does. */
const EARLY = rounds(6, 18);
const MESHED = { "linkerd.io/control-plane-ns": "linkerd" };

interface Pods {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly uid: string };
    readonly spec: { readonly nodeName?: string };
    readonly status: {
      readonly initContainerStatuses?: readonly { readonly lastState: object; readonly restartCount: number }[];
    };
  }[];
}

const deployment = (name: string, validator: boolean, replicas = 2) => {
  const options = { proxy: "sidecar", validator } as const;
  const labels = { ...MESHED, app: name };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace: "default" },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels, annotations: podAnnotations(options) }, spec: podSpec(options) },
    },
  };
};

clusterSuite("pods and nodes that lose the race, in a cluster", (cluster) => {
  const podsOf = async (app: string) =>
    (await cluster.kubectl.json<Pods>("get", "pods", `--selector=app=${app}`)).items;
  const available = (name: string, timeout = "90s") =>
    cluster.kubectl.run("wait", `deployment/${name}`, "--for=condition=Available", `--timeout=${timeout}`);
  /** How often each pod's validator, its first init container, found its pod unchained. */
  const validatorRestarts = async (app: string) =>
    (await podsOf(app)).map(({ status }) => status.initContainerStatuses?.[0]?.restartCount);
  const eventsOf = (reason: string) =>
    cluster.kubectl.json<{ items: object[] }>("get", "events", `--field-selector=reason=${reason}`);

  // No pod of these tests is injected by it.
  beforeAll(() => cluster.kubectl.apply(injectorWebhook("Fail")));

  test("pods that started before the chart was installed are repaired without a human", async () => {
    const { kubectl } = cluster;
    await kubectl.apply(deployment("early", true));
    await until("two failed validators", async () => {
      const states = (await podsOf("early")).flatMap(({ status }) => status.initContainerStatuses ?? []);
      return states.filter(({ lastState }) => JSON.stringify(lastState).includes('"exitCode":95')).length === 2;
    });
    const before = (await podsOf("early")).map(({ metadata }) => metadata.uid);
    await cluster.install("--set=repairController.enabled=true");
    await available("early");
    const after = (await podsOf("early")).map(({ metadata }) => metadata.uid);
    expect(after.filter((uid) => before.includes(uid))).toEqual([]);
    expect((await eventsOf("LinkerdCNINotConfigured")).items).toHaveLength(2);
  });

  test("healthy pods are left alone, and a pod outside the mesh without a validator is reported", async () => {
    const { kubectl } = cluster;
    await kubectl.apply(deployment("healthy", true));
    await available("healthy");
    const before = (await podsOf("healthy")).map(({ metadata }) => metadata.uid).sort();
    await kubectl.start(pod("chained", { proxy: "sidecar", labels: MESHED }));
    await cluster.uninstall();
    await kubectl.start(pod("bare", { proxy: "sidecar", labels: MESHED }));
    await cluster.install("--set=repairController.enabled=true");
    let events: object[] = [];
    await until("the report", async () => {
      events = (await eventsOf("LinkerdCNINotRedirected")).items;
      return events.length > 0;
    });
    expect(events).toHaveLength(1);
    expect(JSON.stringify(events)).toContain('"name":"bare"');
    expect((await podsOf("healthy")).map(({ metadata }) => metadata.uid).sort()).toEqual(before);
    await cluster.uninstall();
  });

  test("after a power failure no pod comes back without a proxy, although the injector is held back, too", async () => {
    const { kubectl, machine } = cluster;
    const list = await readFile(CONFIGURATION, "utf8");
    await cluster.install("--set=repairController.enabled=true");
    await installInjector(kubectl);
    const web = deployment("web", false, EARLY);
    const template = { metadata: { labels: { app: "web", ...INJECT } }, spec: podSpec({}) };
    await kubectl.apply({ ...web, spec: { ...web.spec, template } });
    await available("web");
    type Injected = { items: { spec: { containers: { name: string }[] }; status: object }[] };
    const pods = async () => (await kubectl.json<Injected>("get", "pods", "--selector=app=web")).items;
    const proxied = async () =>
      (await pods()).map(({ spec }) => spec.containers.some(({ name }) => name === "linkerd-proxy"));
    expect(await proxied()).toEqual(Array(EARLY).fill(true));

    const hold = (value: string | null) =>
      kubectl.run(
        "patch",
        "daemonset/linkerd-cni",
        "--namespace=linkerd-cni",
        `--patch=${JSON.stringify({ spec: { template: { spec: { nodeSelector: { hold: value } } } } })}`,
      );
    await powerOff(machine);
    // The pods start before the installer, on a node whose primary plugin has written its list again.
    await hold("true");
    const installers = ["pods", "--namespace=linkerd-cni", "--selector=k8s-app=linkerd-cni"];
    await until("the installer's pods to be deleted", async () => {
      const { items } = await kubectl.json<{ items: { metadata: { deletionTimestamp?: string } }[] }>(
        "get",
        ...installers,
      );
      return items.every(({ metadata }) => metadata.deletionTimestamp !== undefined);
    });
    await configure(list);
    await powerOn(machine);
    const held = async (...selected: readonly string[]) => {
      const { items } = await kubectl.json<Injected>("get", "pods", ...selected);
      return items.every(({ status }) => JSON.stringify(status).includes('"exitCode":95'));
    };
    await until("the pods' validators", () => held("--selector=app=web"), 120);
    await until("the injector's validator", () => held("--namespace=linkerd"));
    await hold(null);
    await cluster.rolledOut();
    await injectorAvailable(kubectl);
    await available("web");
    await until("the former pods' end", async () => (await pods()).length === EARLY);
    const isProxied = await proxied();
    process.stdout.write(`after a power failure: ${isProxied.filter(Boolean).length} of ${EARLY} pods have a proxy\n`);
    expect(isProxied).toEqual(Array(EARLY).fill(true));
    await kubectl.run("delete", "namespace", "linkerd", "--timeout=60s");
    await kubectl.run("delete", "deployment", "web", "--timeout=60s");
    await kubectl.apply(injectorWebhook("Fail"));
    await cluster.uninstall();
  });

  test("a node that joins with the taint starts no meshed pod unchained", async () => {
    const { kubectl, machine } = cluster;
    await kubectl.run("delete", "deployments", "--all", "--timeout=60s");
    await cluster.install("--set=nodeTaint.enabled=true", "--set=rbac.minimal=true");
    await powerOff(machine);
    await kubectl.run("delete", "node", NODE.name);
    await kubectl.run("delete", "pods", "--all", "--all-namespaces", "--grace-period=0", "--force");
    await cleanDisk(undefined);
    await kubectl.apply(deployment("joining", true, 8));
    await powerOn(machine, `--register-with-taints=${KEY}=:NoSchedule`);
    await available("joining");
    expect(await validatorRestarts("joining")).toEqual(Array(8).fill(0));
    const { spec } = await kubectl.json<{ spec: { taints?: object[] } }>("get", "node", NODE.name);
    expect(spec.taints).toBeUndefined();
  });
});
