import { join } from "node:path";
import { root } from "../../build/paths";
import { differences } from "../../demo/snapshot";
import { importNextImage } from "./next-image";
import { pod } from "./pods";
import { PodStream } from "./stream";
import { clusterSuite } from "./suite";

const MANIFEST = join("dist", "manifests", "linkerd-cni.yaml");
/** What an earlier version of the manifests could have held. */
const obsolete = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "obsolete", namespace: "linkerd-cni", labels: { "linkerd.io/cni-resource": "true" } },
};
const prunedBy = (output: string) => output.split("\n").filter((line) => line.endsWith("pruned"));

clusterSuite("changing what is installed in a cluster", (cluster) => {
  let before: Record<string, string>;
  const proxyUser = async () => {
    const { plugins } = await cluster.configuration();
    return (plugins.at(-1) as { linkerd?: { "proxy-uid"?: number } }).linkerd?.["proxy-uid"];
  };

  beforeAll(async () => {
    before = await cluster.directories();
    await cluster.install();
    await cluster.kubectl.start(pod("client"));
  });

  test("other values, another image and a rollback, while 100 meshed pods start: none fails, all are redirected", async () => {
    const present = await cluster.executables();
    const next = await importNextImage(cluster.machine, "next");
    expect(present).not.toEqual([next]);
    const stream = new PodStream(cluster.kubectl, "client");
    await cluster.upgrade("--set", "ignoreInboundPorts=25", "--set", "proxyUID=2103");
    expect(await proxyUser()).toBe(2103);
    await cluster.upgrade("--reuse-values", "--set", "image.version=next");
    expect(await cluster.executables()).toEqual([next]);
    await cluster.helm("rollback", "linkerd-cni", "1", "-n", "linkerd-cni");
    await cluster.rolledOut();
    expect(await proxyUser()).toBe(2102);
    expect(await cluster.executables()).toEqual(present);
    const { started, notRedirected } = await stream.stop(100);
    expect(await cluster.failedStarts()).toEqual([]);
    expect(notRedirected).toEqual([]);
    expect(started).toBeGreaterThanOrEqual(100);
  });

  test("a restart of the installer leaves everything in place", async () => {
    const installed = await cluster.directories();
    await cluster.kubectl.run("rollout", "restart", "--namespace=linkerd-cni", "daemonset/linkerd-cni");
    await cluster.rolledOut();
    expect(await cluster.chain()).toEqual(["bridge", "portmap", "linkerd-cni"]);
    expect(Object.keys(await cluster.directories())).toEqual(Object.keys(installed));
  });

  test("helm uninstall after all of it puts every byte back", async () => {
    await cluster.uninstall();
    expect(differences(before, await cluster.directories())).toEqual([]);
  });

  test("the static manifests install, apply again without a difference, prune what is obsolete, and go", async () => {
    const apply = ["kubectl", "apply", "-f", MANIFEST];
    const at = { directory: root };
    await cluster.machine.run(apply, at);
    await cluster.rolledOut();
    expect(await cluster.chain()).toEqual(["bridge", "portmap", "linkerd-cni"]);
    expect(await cluster.machine.run(["kubectl", "diff", "-f", MANIFEST], at)).toBe("");
    expect(await cluster.machine.run(apply, at)).not.toMatch(/created|configured/);
    // As Argo CD and Flux apply.
    const server = ["--server-side", "--field-manager=argocd-controller", "--force-conflicts", "-f", MANIFEST];
    await cluster.machine.run(["kubectl", "apply", ...server], at);
    expect(await cluster.machine.run(["kubectl", "diff", ...server], at)).toBe("");
    await cluster.kubectl.apply(obsolete);
    const pruned = await cluster.machine.run([...apply, "--prune", "-l", "linkerd.io/cni-resource=true"], at);
    expect(prunedBy(pruned)).toEqual(["configmap/obsolete pruned"]);
    await cluster.rolledOut();
    await cluster.machine.run(["kubectl", "delete", "-f", MANIFEST, "--timeout=60s"], at);
    expect(differences(before, await cluster.directories())).toEqual([]);
  });

  test("what l5d-cni prints installs, prunes what a later print leaves out, and goes", async () => {
    const sh = (script: string) =>
      cluster.machine.run(["sh", "-e", "-c", `PATH=$PWD/dist/bin:$PATH; ${script}`], { directory: root });
    const prune = "kubectl apply --prune -l linkerd.io/cni-resource=true -f -";
    await sh(`l5d-cni install-cni --proxy-uid 2103 | ${prune}`);
    await cluster.rolledOut();
    expect(await proxyUser()).toBe(2103);
    const [address] = (await cluster.kubectl.start(pod("by-cli", { proxy: "sidecar" }))) as [string];
    expect(await cluster.kubectl.dial("client", `${address}:8080`)).toMatchObject({ port: 4143 });
    await cluster.kubectl.apply(obsolete);
    expect(prunedBy(await sh(`l5d-cni install-cni | ${prune}`))).toEqual(["configmap/obsolete pruned"]);
    await cluster.rolledOut();
    expect(await proxyUser()).toBe(2102);
    await sh("l5d-cni uninstall-cni | kubectl delete --timeout=60s -f -");
    expect(differences(before, await cluster.directories())).toEqual([]);
    await cluster.kubectl.stop("by-cli");
  });
});
