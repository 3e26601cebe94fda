import { readdirSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import Table from "cli-table3";
import { differences } from "../../demo/snapshot";
import {
  evictInstaller,
  forceDeleteInstaller,
  reboot,
  replaceAccountsKey,
  signalInstaller,
  withoutApiServer,
} from "./faults";
import { onDisk } from "./paths";
import { pod, until } from "./pods";
import { clusterSuite, NET_DIR } from "./suite";

/** What linkerd's injector writes besides. */
const INJECTED = { "linkerd.io/created-by": "linkerd/proxy-injector edge-26.5.1" };
const injected = (name: string) => pod(name, { proxy: "sidecar", annotations: INJECTED });
const CHAIN = ["bridge", "portmap", "linkerd-cni"];

clusterSuite("a cluster in which things fail", (cluster) => {
  const table = new Table({ head: ["fault", "what was seen"], style: { head: [], border: [] } });
  let before: Record<string, string>;

  beforeAll(async () => {
    before = await cluster.directories();
    await cluster.install();
    await cluster.kubectl.start(pod("client"), pod("meshed", { proxy: "sidecar" }));
  });
  afterAll(() => void process.stdout.write(`${table.toString()}\n`));

  const caller = async (address: string) => cluster.kubectl.dial("client", `${address}:8080`);
  const redirected = (address: string) => ({ port: 4143, original: `${address}:8080` });
  const kubeconfig = () => readFileSync(join(onDisk(NET_DIR), "ZZZ-linkerd-cni-kubeconfig"), "utf8");

  test("while the API server is down for 60 s, injected pods start redirected, and unmeshed pods start", async () => {
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
    await withoutApiServer(cluster.machine, 60, async () => {
      await Promise.all(pods.map((each, index) => writeFile(files[index] ?? "", JSON.stringify(each))));
      await until("pods that start without the API server", async () => networked("injected") && networked("unmeshed"));
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
    table.push(["API server down for 60 s", `an injected and an unmeshed pod started after ${seconds.toFixed(1)} s`]);
    await Promise.all(files.map((file) => rm(file)));
  });

  test("after a power cut, pods come back redirected", async () => {
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
    table.push(["node lost power", `all pods back and redirected after ${seconds.toFixed(1)} s`]);
  });

  test("when all service account tokens are refused, no pod is stuck for good", async () => {
    const old = kubeconfig();
    await replaceAccountsKey(cluster.machine);
    const [unmeshed, meshed] = (await cluster.kubectl.start(pod("unmeshed"), injected("trusted"))) as [string, string];
    expect(await caller(unmeshed)).toEqual({ served: 8080 });
    expect(await caller(meshed)).toEqual(redirected(meshed));
    await cluster.kubectl.apply(pod("asking", { proxy: "sidecar" }));
    await until("the event that tells of the refused token", async () =>
      (await cluster.kubectl.run("events", "--for=pod/asking")).includes("401"),
    );
    const start = Date.now();
    await cluster.kubectl.run("delete", "pod", "--namespace=linkerd-cni", "--selector=k8s-app=linkerd-cni");
    await cluster.rolledOut();
    expect(kubeconfig()).not.toBe(old);
    const seconds = (Date.now() - start) / 1000;
    const asking = await cluster.kubectl.ready("asking");
    expect(await caller(asking)).toEqual(redirected(asking));
    table.push([
      "all service account tokens refused",
      `unmeshed and injected pods start; the installer's next pod renewed the token within ${seconds.toFixed(1)} s`,
    ]);
  });

  test("an installer that is killed comes back, and finds everything in place", async () => {
    const installed = Object.keys(await cluster.directories());
    await signalInstaller(cluster.machine, "KILL");
    const [address] = (await cluster.kubectl.start(pod("meanwhile", { proxy: "sidecar" }))) as [string];
    expect(await caller(address)).toEqual(redirected(address));
    await cluster.rolledOut();
    expect(Object.keys(await cluster.directories())).toEqual(installed);
    table.push(["installer killed by -9", "a meshed pod started meanwhile was redirected"]);
  });

  test.each([
    ["evicted", evictInstaller],
    ["deleted with grace period 0", forceDeleteInstaller],
  ])("an installer whose pod is %s leaves everything in place for the next", async (how, remove) => {
    const name = `while-${how.split(" ")[0]}`;
    const installed = Object.keys(await cluster.directories());
    const failed = await cluster.failedStarts();
    await remove(cluster.machine);
    const [address] = (await cluster.kubectl.start(pod(name, { proxy: "sidecar" }))) as [string];
    expect(await caller(address)).toEqual(redirected(address));
    await cluster.rolledOut();
    expect(Object.keys(await cluster.directories())).toEqual(installed);
    expect(await cluster.failedStarts()).toEqual(failed);
    table.push([`installer's pod ${how}`, "a meshed pod started meanwhile was redirected; no ADD failed"]);
    await cluster.kubectl.stop(name);
  });

  test("an uninstall whose installer is killed leaves a node that starts and stops pods; the next one cleans it", async () => {
    await signalInstaller(cluster.machine, "KILL");
    await cluster.uninstall();
    const left = differences(before, await cluster.directories());
    await cluster.kubectl.start(pod("afterwards"));
    await cluster.kubectl.stop("meanwhile");
    await cluster.install();
    await cluster.uninstall();
    expect(differences(before, await cluster.directories())).toEqual([]);
    table.push([
      "installer killed by -9, then helm uninstall",
      `${left.length} files left; pods start and stop; the next uninstall left none`,
    ]);
  });

  test("a namespace that is deleted takes everything away from the node, which starts and stops pods", async () => {
    await cluster.install();
    const start = Date.now();
    await cluster.kubectl.run("delete", "namespace", "linkerd-cni", "--timeout=60s");
    const seconds = (Date.now() - start) / 1000;
    expect(differences(before, await cluster.directories())).toEqual([]);
    const [address] = (await cluster.kubectl.start(pod("free", { proxy: "sidecar" }))) as [string];
    expect(await caller(address)).toEqual({ served: 8080 });
    await cluster.kubectl.stop("free", "afterwards");
    table.push(["namespace deleted", `every byte of the node's directories as before, after ${seconds.toFixed(1)} s`]);
  });
});
