import { readdirSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { aligned } from "../../cli/aligned";
import { rounds } from "../support/rounds";
import { differences } from "../support/snapshot";
import { until } from "../support/until";
import {
  evictInstaller,
  reboot,
  replaceAccountsKey,
  restartRuntimeAlone,
  sandboxes,
  signalInstaller,
  withoutApiServer,
  withoutNetwork,
} from "./faults";
import { onDisk } from "./paths";
import { INJECTED, pod } from "./pods";
import { PodStream } from "./stream";
import { clusterSuite } from "./suite";

const injected = (name: string) => pod(name, { proxy: "sidecar", annotations: INJECTED });
const CHAIN = ["bridge", "portmap", "linkerd-cni"];
const DOWN_SECONDS = rounds(10, 60);

clusterSuite("a cluster in which things fail", (cluster) => {
  const seen = new Map<string, string>();
  let before: Record<string, string>;

  beforeAll(async () => {
    before = await cluster.directories();
    await cluster.install();
    await cluster.kubectl.start(pod("client"), pod("meshed", { proxy: "sidecar" }));
  });
  afterAll(() => {
    process.stdout.write(aligned([["fault", "what was seen"], ...seen]));
  });

  /** A test with a row of the table. @param work returns the result for the row */
  const fault = (name: string, row: string, work: () => Promise<string>) => {
    seen.set(row, "not tried");
    test(name, async () => {
      seen.set(row, "FAILED");
      seen.set(row, await work());
    });
  };

  const caller = async (address: string) => cluster.kubectl.dial("client", `${address}:8080`);
  const redirected = (address: string) => ({ port: 4143, original: `${address}:8080` });

  fault(
    `while the API server is down for ${DOWN_SECONDS} s, injected pods start redirected, and unmeshed pods start`,
    `API server down for ${DOWN_SECONDS} s`,
    async () => {
      const manifests = onDisk("/etc/kubernetes/manifests");
      const pods = [injected("injected"), pod("unmeshed")];
      const files = pods.map((each) => join(manifests, `${each.metadata.name}.json`));
      // The kubelet makes the directory of a container's log once the pod has its network.
      const networked = (name: string) =>
        readdirSync(onDisk("/var/log/pods"), { recursive: true }).some((path) =>
          new RegExp(`^default_${name}-node_.*/app$`).test(String(path)),
        );
      const start = Date.now();
      let seconds = 0;
      await withoutApiServer(cluster.machine, DOWN_SECONDS, async () => {
        await Promise.all(pods.map((each, index) => writeFile(files[index] ?? "", JSON.stringify(each))));
        await until(
          "pods that start without the API server",
          async () => networked("injected") && networked("unmeshed"),
        );
        seconds = (Date.now() - start) / 1000;
      });
      const [meshed, plain] = await Promise.all(
        ["injected-node", "unmeshed-node"].map(async (name) => {
          await until(`${name} in the API`, () => cluster.kubectl.run("get", `pod/${name}`).then(Boolean, () => false));
          return cluster.kubectl.ready(name);
        }),
      );
      expect(await caller(meshed ?? "")).toEqual(redirected(meshed ?? ""));
      expect(await caller(plain ?? "")).toEqual({ served: 8080 });
      await Promise.all(files.map((file) => rm(file)));
      return `an injected and an unmeshed pod started after ${seconds.toFixed(1)} s`;
    },
  );

  fault(
    "a container runtime that is started again without the API server keeps every pod's sandbox",
    "containerd and kubelet restarted while the API server was down",
    async () => {
      // The static pods of the fault before may still be ending.
      const sandboxesNow = () => sandboxes(cluster.machine, ["injected-node", "unmeshed-node"]);
      const [old, calls] = [await sandboxesNow(), await cluster.additions(/./)];
      expect(old.length).toBeGreaterThan(3);
      await restartRuntimeAlone(cluster.machine);
      // When a pod that is created now starts, the kubelet has seen the earlier ones.
      await cluster.kubectl.start(pod("after-restart"));
      const added = (await cluster.additions(/./)).slice(calls.length);
      expect(added.map((record) => record.pod)).toEqual(["default/after-restart"]);
      expect(await sandboxesNow()).toEqual(expect.arrayContaining(old));
      const address = await cluster.kubectl.ready("meshed");
      expect(await caller(address)).toEqual(redirected(address));
      await cluster.kubectl.stop("after-restart");
      return `all ${old.length} sandboxes are the old ones`;
    },
  );

  fault("after a power cut, pods come back redirected", "node lost power", async () => {
    const start = Date.now();
    await reboot(cluster.machine);
    type Restarted = { status: { containerStatuses?: { restartCount: number; ready: boolean }[] } };
    const back = async (name: string) => {
      const { status } = await cluster.kubectl.json<Restarted>("get", `pod/${name}`);
      return status.containerStatuses?.every(({ restartCount, ready }) => ready && restartCount > 0) === true;
    };
    await until("the pods to be back", async () => (await back("meshed")) && (await back("client")), 120);
    const seconds = (Date.now() - start) / 1000;
    const address = await cluster.kubectl.ready("meshed");
    expect(await caller(address)).toEqual(redirected(address));
    await cluster.rolledOut();
    expect(await cluster.chain()).toEqual(CHAIN);
    return `all pods back and redirected after ${seconds.toFixed(1)} s`;
  });

  fault(
    "when all service account tokens are refused, no pod is stuck for good",
    "all service account tokens refused",
    async () => {
      await replaceAccountsKey(cluster.machine);
      const [unmeshed, meshed] = (await cluster.kubectl.start(pod("unmeshed"), injected("trusted"))) as [
        string,
        string,
      ];
      expect(await caller(unmeshed)).toEqual({ served: 8080 });
      expect(await caller(meshed)).toEqual(redirected(meshed));
      await cluster.kubectl.apply(pod("asking", { proxy: "sidecar" }));
      await until("the event that tells of the refused token", async () =>
        (await cluster.kubectl.run("events", "--for=pod/asking")).includes("401"),
      );
      const start = Date.now();
      await cluster.kubectl.run("delete", "pod", "--namespace=linkerd-cni", "--selector=k8s-app=linkerd-cni");
      await cluster.rolledOut();
      const seconds = (Date.now() - start) / 1000;
      const asking = await cluster.kubectl.ready("asking");
      expect(await caller(asking)).toEqual(redirected(asking));
      return `unmeshed and injected pods start; the installer's pod was deleted by hand, the next one looked pods up after ${seconds.toFixed(1)} s`;
    },
  );

  fault(
    "meshed pods that are looked up start all the time while the installer is frozen, cut off, killed and replaced",
    "installer frozen, cut off, killed -9 and replaced, under a stream of meshed pods",
    async () => {
      const [failures, earlier] = [await cluster.failures(), await cluster.additions(/stream/)];
      const stream = new PodStream(cluster.kubectl, "client");
      const calls = async () => (await cluster.additions(/stream/)).slice(earlier.length);
      /** Resolves once another pod was looked up this way. */
      const lookedUp = async (way: string, why = /^/) => {
        const count = async () =>
          (await calls()).filter((call) => call.lookup === way && why.test(call.reason ?? "")).length;
        const before = await count();
        await until(`a look-up: ${way}`, async () => {
          await stream.check();
          return (await count()) > before;
        });
      };
      await lookedUp("installer");
      await signalInstaller(cluster.machine, "STOP");
      await lookedUp("annotations", /no answer within/);
      await signalInstaller(cluster.machine, "CONT");
      await lookedUp("installer");
      await withoutNetwork(cluster.machine, () => lookedUp("annotations"));
      await lookedUp("installer");
      await signalInstaller(cluster.machine, "KILL");
      await lookedUp("installer");
      await cluster.kubectl.run("rollout", "restart", "daemonset/linkerd-cni", "--namespace=linkerd-cni");
      await cluster.rolledOut();
      await lookedUp("installer");
      expect(await cluster.failures()).toEqual(failures);
      const { started, notRedirected } = await stream.stop();
      expect(notRedirected).toEqual([]);
      expect(await cluster.failures()).toEqual(failures);
      const alone = (await calls()).filter(({ lookup }) => lookup === "annotations").length;
      return `${started} meshed pods started, all redirected; ${alone} by their annotations alone; no ADD failed`;
    },
  );

  fault("an evicted installer leaves everything in place for the next", "installer's pod evicted", async () => {
    const installed = Object.keys(await cluster.directories());
    const failures = await cluster.failures();
    await evictInstaller(cluster.machine);
    const [address] = (await cluster.kubectl.start(injected("meanwhile"))) as [string];
    expect(await caller(address)).toEqual(redirected(address));
    await cluster.rolledOut();
    expect(Object.keys(await cluster.directories())).toEqual(installed);
    expect(await cluster.failures()).toEqual(failures);
    return "a meshed pod started meanwhile was redirected; no ADD failed";
  });

  fault(
    "an uninstall whose installer is dead leaves a node that starts and stops pods; the next one cleans it",
    "installer dead by -9 during helm uninstall",
    async () => {
      // Started again at once after the first time, and 10 s later after the second: helm is done by then.
      await signalInstaller(cluster.machine, "KILL");
      await until("the installer to be back", async () => `${await cluster.restarts()}` === "1");
      await cluster.rolledOut();
      await signalInstaller(cluster.machine, "KILL");
      await cluster.uninstall();
      const left = differences(before, await cluster.directories());
      expect(left).toEqual(expect.arrayContaining(["10-cluster.conflist", "linkerd-cni"]));
      expect(await cluster.chain()).toEqual(CHAIN);
      const failures = await cluster.failures();
      const [plain, meshed] = (await cluster.kubectl.start(pod("afterwards"), injected("orphan"))) as [string, string];
      expect(await caller(plain)).toEqual({ served: 8080 });
      expect(await caller(meshed)).toEqual(redirected(meshed));
      await cluster.kubectl.stop("meanwhile", "orphan");
      expect(await cluster.failures()).toEqual(failures);
      await cluster.install();
      await cluster.uninstall();
      expect(differences(before, await cluster.directories())).toEqual([]);
      return `${left.length} files left, the chain complete; unmeshed and injected pods start, old ones stop; the next uninstall left none`;
    },
  );

  fault(
    "deleting the namespace removes everything from the node, which starts and stops pods",
    "namespace deleted",
    async () => {
      await cluster.install();
      const start = Date.now();
      await cluster.kubectl.run("delete", "namespace", "linkerd-cni", "--timeout=60s");
      const seconds = (Date.now() - start) / 1000;
      expect(differences(before, await cluster.directories())).toEqual([]);
      const [address] = (await cluster.kubectl.start(pod("free", { proxy: "sidecar" }))) as [string];
      expect(await caller(address)).toEqual({ served: 8080 });
      await cluster.kubectl.stop("free", "afterwards");
      return `every byte of the node's directories as before, after ${seconds.toFixed(1)} s`;
    },
  );
});
