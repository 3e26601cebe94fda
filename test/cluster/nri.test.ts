/** The NRI plugin under real containerds: while it runs, while it does not, and afterwards for each pod. */
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { buildCli } from "../../build/cli";
import { outputs } from "../../build/paths";
import { until } from "../support/until";
import { sandboxTimes } from "./costs";
import { CONFIGURATION } from "./node";
import { inPod, NriPlugin, restartRuntime } from "./nri";
import { INJECTED, type Pod, pod, podAnnotations, podSpec } from "./pods";
import { PodStream } from "./stream";
import { clusterSuite, type TestCluster } from "./suite";

/** Containers of a pod that requires the plugin are refused while it is not connected, if the runtime checks that. */
const REQUIRED = "required-plugins.noderesource.dev";
/** Exit code of linkerd-network-validator, and of the tests' validator, in a pod that is not redirected. */
const NOT_REDIRECTED = '"exitCode":95';
/** How long containerd waits for a plugin, and somewhat less. */
const STALL_MS = 1900;
const PODS = 100;

const VALIDATED = { proxy: "sidecar", validator: true, annotations: INJECTED } as const;
const BARE = { proxy: "sidecar", annotations: INJECTED } as const;

const replicaSet = (name: string, replicas: number) => ({
  apiVersion: "apps/v1",
  kind: "ReplicaSet",
  metadata: { name, namespace: "default" },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name }, annotations: podAnnotations(VALIDATED) },
      spec: podSpec(VALIDATED),
    },
  },
});

const configuration = () => readFile(CONFIGURATION, "utf8");

/** Helpers of this file's tests. */
class Questions {
  constructor(private readonly cluster: TestCluster) {}

  pod(name: string): Promise<Pod> {
    return this.cluster.kubectl.json<Pod>("get", "pod", name);
  }

  async pods(app: string): Promise<readonly Pod[]> {
    return (await this.cluster.kubectl.json<{ items: Pod[] }>("get", "pods", `--selector=app=${app}`)).items;
  }

  /** How often a pod's init containers, the validator first, were restarted. */
  async retries(name: string): Promise<number> {
    return retriesOf(await this.pod(name));
  }

  /** Waits until validators have ended because their pods are not redirected. */
  unredirected(...names: readonly string[]): Promise<void> {
    return until(`${names.join(" and ")} to be found without rules`, async () => {
      const found = await Promise.all(names.map((name) => this.pod(name)));
      return found.every(({ status }) => JSON.stringify(status).includes(NOT_REDIRECTED));
    });
  }

  /** The port that answers a connection to a pod from outside: 4143 is the proxy, 8080 the application itself. */
  async answers(address: string): Promise<object> {
    return this.cluster.kubectl.dial("client", `${address}:8080`);
  }

  /** Starts pods, waits until their validators have failed, and gives their UIDs. */
  async startUnredirected(...names: readonly string[]): Promise<readonly string[]> {
    await this.cluster.kubectl.apply(...names.map((name) => pod(name, VALIDATED)));
    await this.unredirected(...names);
    return Promise.all(names.map(async (name) => (await this.pod(name)).metadata.uid));
  }

  /** Expects that pods, which ran without rules, were mended in place. @param uids their UIDs before */
  async expectRepaired(names: readonly string[], uids: readonly string[]): Promise<void> {
    for (const [index, name] of names.entries()) {
      const address = await this.cluster.kubectl.ready(name);
      expect(await this.answers(address)).toEqual({ port: 4143, original: `${address}:8080` });
      const { metadata } = await this.pod(name);
      expect(metadata.uid).toBe(uids[index]);
      expect(metadata.deletionTimestamp).toBeUndefined();
    }
  }

  /** Texts of the Events about a pod. */
  events(name: string): Promise<string> {
    return this.cluster.kubectl.run("events", `--for=pod/${name}`);
  }

  /** Failures of `l5d-cni check`, and its warnings. */
  async checkFindings(): Promise<readonly object[]> {
    const script = '"$@" || test $? -eq 1';
    const command = [process.execPath, outputs.cli, "check", "--output=json"];
    const out = await this.cluster.machine.run(["sh", "-c", script, "sh", ...command]);
    type Check = { result: "success" | "warning" | "error" };
    const checks = (JSON.parse(out) as { categories: { checks: Check[] }[] }).categories.flatMap(
      (category) => category.checks,
    );
    return checks.filter(({ result }) => result !== "success");
  }
}

const retriesOf = ({ status }: Pod) =>
  (status.initContainerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0);

clusterSuite(
  "the redirect by NRI, on containerd 2.2",
  (cluster) => {
    const plugin = new NriPlugin(cluster);
    const ask = new Questions(cluster);
    let untouched: string;
    let before: Record<string, string>;

    beforeAll(async () => {
      await buildCli();
      before = await cluster.directories();
      untouched = await configuration();
    });
    // No test changes the primary configuration but the one that says so.
    let isChained = false;
    afterEach(async () => {
      if (!isChained) expect(await configuration()).toBe(untouched);
    });

    test("pods that fail before the chart is installed become ready in place, and an Event on each says so", async () => {
      const { kubectl } = cluster;
      await kubectl.apply(replicaSet("early", 2));
      await until("two failed validators", async () => {
        const pods = await ask.pods("early");
        return pods.filter((each) => JSON.stringify(each.status).includes(NOT_REDIRECTED)).length === 2;
      });
      const uids = (await ask.pods("early")).map(({ metadata }) => metadata.uid).sort();
      await cluster.install("--set=nri.enabled=true", "--set=chained=false", "--set=repairController.enabled=true");
      await plugin.rolledOut();
      await kubectl.run("wait", "pods", "--selector=app=early", "--for=condition=Ready", "--timeout=180s");
      const after = await ask.pods("early");
      expect(after.map(({ metadata }) => metadata.uid).sort()).toEqual(uids);
      expect(await plugin.metric("mended_pods_total")).toBe(2);
      for (const { metadata } of after) {
        await until("the Event", async () => (await ask.events(metadata.name)).includes("LinkerdCNIRedirectMended"));
      }
    });

    test("meshed pods of every kind start redirected, others do not", async () => {
      const { kubectl } = cluster;
      const [plain = "", sidecar = "", native = ""] = await kubectl.start(
        pod("client"),
        pod("sidecar", VALIDATED),
        pod("native", { ...VALIDATED, proxy: "native" }),
        // The plugin must look this pod up: it has no annotation of the injector.
        pod("unknown", { proxy: "sidecar", validator: true }),
      );
      expect(await ask.answers(plain)).toEqual({ served: 8080 });
      for (const address of [sidecar, native]) {
        expect(await ask.answers(address)).toEqual({ port: 4143, original: `${address}:8080` });
      }
      expect(await Promise.all(["sidecar", "native", "unknown"].map((name) => ask.retries(name)))).toEqual([0, 0, 0]);
      expect(await plugin.metric('pods_total{event="run",outcome="redirected"}')).toBe(3);
    });

    test("a pod with a wrong annotation is refused with the message that the CNI plugin has for it", async () => {
      const annotations = { ...INJECTED, "config.linkerd.io/skip-inbound-ports": "foo" };
      await cluster.kubectl.apply(pod("wrong", { proxy: "sidecar", annotations }));
      const message =
        'config.linkerd.io/skip-inbound-ports on pod default/wrong: "foo" is not a port or a range low-high';
      await until("the refusal", async () => (await ask.events("wrong")).includes(message));
      expect((await ask.pod("wrong")).status.phase).toBe("Pending");
      await cluster.kubectl.stop("wrong");
    });

    test(`${PODS} pods start while the DaemonSet rolls: none without rules at any time, none deleted`, async () => {
      const stream = new PodStream(cluster.kubectl, "client", { validator: true });
      let rolls = 0;
      while (stream.started < PODS) {
        await stream.check();
        await plugin.restart();
        await plugin.rolledOut();
        rolls++;
      }
      const { started, notRedirected, late } = await stream.stop();
      process.stdout.write(`${started} pods, ${rolls} rolls of the DaemonSet\n`);
      expect(notRedirected).toEqual([]);
      expect(late).toEqual([]);
      expect(rolls).toBeGreaterThan(1);
    });

    test("while it is absent pods start at once, without rules; it mends them in place, and leaves others' rules alone", async () => {
      const { kubectl, machine } = cluster;
      await plugin.takeAway();
      const [bare = "", foreign = ""] = await kubectl.start(pod("bare", BARE), pod("foreign", BARE));
      const uids = await ask.startUnredirected("absent");
      expect((await sandboxTimes()).get("absent")).toBeLessThan(STALL_MS);
      expect(await ask.answers(bare)).toEqual({ served: 8080 });
      const nft = (name: string, ...words: string[]) => inPod(machine, name, "nft", ...words);
      await nft("foreign", "add table ip nat; add chain ip nat PROXY_INIT_REDIRECT");
      await nft("native", "add rule ip linkerd-cni outbound ip daddr 192.0.2.9 return");
      const rules = await Promise.all(["foreign", "native"].map((name) => nft(name, "list", "ruleset")));
      await plugin.bringBack();
      await ask.expectRepaired(["absent"], uids);
      expect(await ask.answers(bare)).toEqual({ port: 4143, original: `${bare}:8080` });
      expect(await ask.retries("absent")).toBeGreaterThan(0);
      expect(await plugin.metric("mended_pods_total")).toBe(2);
      expect(await ask.answers(foreign)).toEqual({ served: 8080 });
      expect(await Promise.all(["foreign", "native"].map((name) => nft(name, "list", "ruleset")))).toEqual(rules);
      const log = await plugin.log();
      expect(log).toMatch(/pod default\/foreign has rules of another program; they are left as they are/);
      expect(log).toMatch(/pod default\/native has other rules than were set; they are left as they are/);
      expect(await plugin.metric('pods_total{event="synchronize",outcome="foreign"}')).toBe(1);
      expect(await plugin.metric('pods_total{event="synchronize",outcome="edited"}')).toBe(1);
      await until("the Event", async () => (await ask.events("native")).includes("LinkerdCNIRedirectNotMended"));
      await kubectl.stop("bare", "foreign", "native", "absent");
    });

    test("while it is stopped one pod waits 2 s, the others not at all; it mends all of them in place", async () => {
      const took = async (name: string) => (await sandboxTimes()).get(name) ?? 0;
      // The removal of a former test's sandbox may be what the runtime waits for, and the pod's wait ends with that.
      for (let attempt = 1; ; attempt++) {
        await plugin.signal("STOP");
        const stalled = await ask.startUnredirected("stalled");
        const later = await ask.startUnredirected("later");
        await plugin.signal("CONT");
        expect(await took("later")).toBeLessThan(STALL_MS);
        await ask.expectRepaired(["stalled", "later"], [...stalled, ...later]);
        const waited = await took("stalled");
        await cluster.kubectl.stop("stalled", "later");
        if (waited > STALL_MS) break;
        expect(attempt).toBeLessThan(3);
      }
    });

    test("if it is killed while a pod waits for it, the pod starts at once, and its successor repairs it in place", async () => {
      const { kubectl, machine } = cluster;
      await plugin.signal("STOP");
      const running = () => machine.run(["ctr", "--namespace=k8s.io", "tasks", "ls", "--quiet"]);
      const tasks = (await running()).length;
      await kubectl.apply(pod("killed", VALIDATED));
      // The runtime calls plugins once the sandbox's own process runs.
      await until("the sandbox", async () => (await running()).length > tasks);
      await sleep(200);
      await plugin.signal("KILL");
      await until("the sandbox's start", async () => (await sandboxTimes()).has("killed"), 5);
      expect((await sandboxTimes()).get("killed")).toBeLessThan(STALL_MS);
      const { metadata } = await ask.pod("killed");
      await ask.expectRepaired(["killed"], [metadata.uid]);
      await plugin.ready();
      await kubectl.stop("killed");
    });

    test("after a restart of containerd running pods have their rules, and new ones get them", async () => {
      const { kubectl, machine } = cluster;
      const { status } = await ask.pod("sidecar");
      const uid = (await ask.pod("sidecar")).metadata.uid;
      const counts = () => Promise.all([plugin.metric("connections_total"), plugin.metric("mended_pods_total")]);
      const [connections = 0, mended = 0] = await counts();
      await restartRuntime(machine);
      await kubectl.start(pod("restarted", VALIDATED));
      expect(await ask.retries("restarted")).toBe(0);
      await ask.expectRepaired(["sidecar", "restarted"], [uid, (await ask.pod("restarted")).metadata.uid]);
      expect((await ask.pod("sidecar")).status.podIP).toBe(status.podIP);
      expect(await counts()).toEqual([connections + 1, mended]);
      await kubectl.stop("restarted");
    });

    test("with the admission policy, pods wait for it if the runtime checks, and then start in place", async () => {
      const { kubectl, machine } = cluster;
      await cluster.upgrade("--reuse-values", "--set=nri.require.admissionPolicy=v1beta1");
      await until("the policy", async () => {
        const { metadata } = await kubectl.dryRun<{ metadata: { annotations?: object } }>(pod("tried", BARE));
        return REQUIRED in (metadata.annotations ?? {});
      });
      await plugin.takeAway();
      await restartRuntime(machine, { validator: true });
      await kubectl.apply(pod("required", VALIDATED), pod("not-meshed"));
      await kubectl.ready("not-meshed");
      await until("the refusal", async () =>
        JSON.stringify(await ask.pod("required")).includes("CreateContainerError"),
      );
      expect(await ask.events("required")).toMatch(/linkerd-cni/);
      const { uid } = (await ask.pod("required")).metadata;
      await plugin.bringBack();
      await ask.expectRepaired(["required"], [uid]);
      expect(await ask.retries("required")).toBe(0);
      await restartRuntime(machine);
      await kubectl.stop("required", "not-meshed");
    });

    test("l5d-cni check has no finding", async () => {
      await plugin.ready();
      expect(await ask.checkFindings()).toEqual([]);
    });

    test("together with the chain each pod is redirected once, and all is gone after the uninstallation", async () => {
      const { kubectl } = cluster;
      await cluster.upgrade("--reuse-values", "--set=chained=true");
      isChained = true;
      await plugin.rolledOut();
      expect(await cluster.chain()).toEqual(["bridge", "portmap", "linkerd-cni"]);
      const there = await plugin.metric('pods_total{event="run",outcome="present"}');
      const [both = ""] = await kubectl.start(pod("both", VALIDATED));
      expect(await ask.answers(both)).toEqual({ port: 4143, original: `${both}:8080` });
      expect(await ask.retries("both")).toBe(0);
      expect(await plugin.metric('pods_total{event="run",outcome="present"}')).toBe(there + 1);
      expect(await cluster.additions("default/both")).toEqual([expect.objectContaining({ decision: "redirect" })]);
      expect(await ask.checkFindings()).toEqual([]);
      await cluster.uninstall();
      expect(await cluster.directories()).toEqual(before);
    });
  },
  "2",
);

clusterSuite(
  "the redirect by NRI, on containerd 2.3",
  (cluster) => {
    const plugin = new NriPlugin(cluster);
    const ask = new Questions(cluster);

    test("a meshed pod starts redirected by the runtime's own call, with the node's configuration untouched", async () => {
      const untouched = await configuration();
      await cluster.install("--set=nri.enabled=true", "--set=chained=false");
      await plugin.rolledOut();
      const [plain = "", meshed = ""] = await cluster.kubectl.start(pod("client"), pod("meshed", VALIDATED));
      expect(await ask.answers(plain)).toEqual({ served: 8080 });
      expect(await ask.answers(meshed)).toEqual({ port: 4143, original: `${meshed}:8080` });
      expect(await ask.retries("meshed")).toBe(0);
      expect(await plugin.log()).toMatch(/connected to containerd v?2\.3/);
      expect(await plugin.metric('pods_total{event="run",outcome="redirected"}')).toBe(1);
      expect(await configuration()).toBe(untouched);
    });
  },
  "2.3",
);
