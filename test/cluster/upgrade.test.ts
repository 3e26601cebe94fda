import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { IMAGE_NAME } from "../../build/image/image";
import { root } from "../../build/paths";
import { differences } from "../../demo/snapshot";
import { pod } from "./pods";
import { PodStream } from "./stream";
import { clusterSuite } from "./suite";

const MANIFEST = join("dist", "manifests", "linkerd-cni.yaml");

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
    const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
    const images = ["ctr", "--namespace=k8s.io", "images"];
    await cluster.machine.run([...images, "tag", `${IMAGE_NAME}:${version}`, `${IMAGE_NAME}:next`]);
    const stream = new PodStream(cluster.kubectl, "client");
    await cluster.upgrade("--set", "ignoreInboundPorts=25", "--set", "proxyUID=2103");
    expect(await proxyUser()).toBe(2103);
    await cluster.upgrade("--reuse-values", "--set", "image.version=next");
    await cluster.helm("rollback", "linkerd-cni", "1", "-n", "linkerd-cni");
    await cluster.rolledOut();
    expect(await proxyUser()).toBe(2102);
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
    await cluster.kubectl.apply({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "obsolete", namespace: "linkerd-cni", labels: { "linkerd.io/cni-resource": "true" } },
    });
    const pruned = await cluster.machine.run([...apply, "--prune", "-l", "linkerd.io/cni-resource=true"], at);
    expect(pruned.split("\n").filter((line) => line.endsWith("pruned"))).toEqual(["configmap/obsolete pruned"]);
    await cluster.rolledOut();
    await cluster.machine.run(["kubectl", "delete", "-f", MANIFEST, "--timeout=60s"], at);
    expect(differences(before, await cluster.directories())).toEqual([]);
  });

  test("deleting the namespace takes everything away from the node", async () => {
    await cluster.machine.run(["kubectl", "apply", "-f", MANIFEST], { directory: root });
    await cluster.rolledOut();
    await cluster.kubectl.run("delete", "namespace", "linkerd-cni", "--timeout=60s");
    expect(differences(before, await cluster.directories())).toEqual([]);
  });
});
