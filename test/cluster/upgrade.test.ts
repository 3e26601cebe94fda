import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../build/paths";
import { differences } from "../support/snapshot";
import { until } from "../support/until";
import { importNextImage } from "./next-image";
import { pod } from "./pods";
import { PodStream } from "./stream";
import { clusterSuite } from "./suite";

const MANIFEST = join("dist", "manifests", "linkerd-cni.yaml");
/** Objects that an earlier version of the manifests could have had. */
const obsolete = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "obsolete", namespace: "linkerd-cni", labels: { "linkerd.io/cni-resource": "true" } },
};
const CHANGES = ["values", "image", "rollback"] as const;
type Change = (typeof CHANGES)[number];
const prunedBy = (output: string) => output.split("\n").filter((line) => line.endsWith("pruned"));
/** The command for an upgrade in docs/gitops.md. */
const [PRUNE = ""] =
  /^kubectl apply --prune (.*\\\n)*.*$/m.exec(readFileSync(join(root, "docs", "gitops.md"), "utf8")) ?? [];

clusterSuite("changing the installation in a cluster", (cluster) => {
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

  test("other values, another image and rollbacks, while 100 meshed pods start: none fails, all are redirected", async () => {
    const present = await cluster.executables();
    const next = await importNextImage(cluster.machine, "next");
    expect(present).not.toEqual([next]);
    const failures = await cluster.failures();
    const stream = new PodStream(cluster.kubectl, "client");
    const changes: { kind: Change; begun: number; ended: number }[] = [];
    const change = async (kind: Change, work: () => Promise<void>) => {
      const begun = Date.now();
      await work();
      changes.push({ kind, begun, ended: Date.now() });
    };
    // One change may fall between two batches of the stream; none of the kinds does so in every round.
    const startsDuring = async () => {
      const starts = (await cluster.additions(/^default\/stream-/)).map(({ time }) => Date.parse(time));
      const meanwhile = (kind: Change, start: number) =>
        changes.some((one) => one.kind === kind && one.begun < start && start < one.ended);
      return CHANGES.map((kind) => starts.filter((start) => meanwhile(kind, start)).length);
    };
    const enough = async () => {
      await stream.check();
      return stream.started >= 100 && !(await startsDuring()).includes(0);
    };
    for (const start = Date.now(); !(await enough()) && Date.now() - start < 300_000; ) {
      const revision = changes.length + 1;
      await change("values", () => cluster.upgrade("--set", "ignoreInboundPorts=25", "--set", "proxyUID=2103"));
      expect(await proxyUser()).toBe(2103);
      await change("image", () => cluster.upgrade("--reuse-values", "--set", "image.version=next"));
      expect(await cluster.executables()).toEqual([next]);
      await change("rollback", () => cluster.rollback(revision));
      expect(await proxyUser()).toBe(2102);
      expect(await cluster.executables()).toEqual(present);
    }
    // Pods that are still starting come on top.
    expect(stream.started).toBeGreaterThanOrEqual(100);
    const { started, notRedirected } = await stream.stop();
    const starts = await startsDuring();
    process.stdout.write(`${started} meshed pods in ${changes.length} changes (${CHANGES}: ${starts})\n`);
    expect(starts).not.toContain(0);
    expect(await cluster.failures()).toEqual(failures);
    expect(notRedirected).toEqual([]);
  }, 480_000);

  test("helm uninstall after all of it puts every byte back", async () => {
    await cluster.uninstall();
    expect(differences(before, await cluster.directories())).toEqual([]);
  });

  test("the static manifests install, apply again without a difference, prune obsolete objects, and are removed", async () => {
    const apply = ["kubectl", "apply", "-f", MANIFEST];
    const at = { directory: root };
    await cluster.machine.run(apply, at);
    await cluster.rolledOut();
    expect(await cluster.chain()).toEqual(["bridge", "portmap", "linkerd-cni"]);
    expect(await cluster.machine.run(["kubectl", "diff", "-f", MANIFEST], at)).toBe("");
    expect(await cluster.machine.run(apply, at)).not.toMatch(/created|configured/);
    // As Argo CD and Flux apply, one after the other and neither by force.
    for (const manager of ["argocd-controller", "kustomize-controller"]) {
      const server = ["--server-side", `--field-manager=${manager}`, "-f", MANIFEST];
      await cluster.machine.run(["kubectl", "apply", ...server], at);
      expect(await cluster.machine.run(["kubectl", "diff", ...server], at)).toBe("");
    }
    await cluster.kubectl.apply(obsolete);
    expect(prunedBy(await cluster.machine.run(["sh", "-c", PRUNE], at))).toEqual(["configmap/obsolete pruned"]);
    await cluster.rolledOut();
    await cluster.machine.run(["kubectl", "delete", "-f", MANIFEST, "--timeout=180s"], at);
    expect(differences(before, await cluster.directories())).toEqual([]);
  });

  test("l5d-cni's manifests install, prune obsolete objects, and are removed", async () => {
    const sh = (script: string) =>
      cluster.machine.run(["sh", "-e", "-c", `PATH=$PWD/dist/bin:$PATH; ${script}`], { directory: root });
    const prune = PRUNE.replace(MANIFEST, "-");
    await sh(`l5d-cni install-cni --proxy-uid 2103 --set networkPolicy.enabled=true | ${prune}`);
    await cluster.rolledOut();
    expect(await proxyUser()).toBe(2103);
    const [address] = (await cluster.kubectl.start(pod("by-cli", { proxy: "sidecar" }))) as [string];
    expect(await cluster.kubectl.dial("client", `${address}:8080`)).toMatchObject({ port: 4143 });
    await cluster.kubectl.apply(obsolete);
    expect(prunedBy(await sh(`l5d-cni install-cni | ${prune}`)).sort()).toEqual([
      "configmap/obsolete pruned",
      "networkpolicy.networking.k8s.io/linkerd-cni pruned",
    ]);
    await cluster.rolledOut();
    expect(await proxyUser()).toBe(2102);
    await sh("l5d-cni uninstall-cni | kubectl delete --ignore-not-found --timeout=180s -f -");
    // The namespace stays, and with it nothing that kubectl waits for until the pods have ended.
    await until("the node's original state", async () => differences(before, await cluster.directories()).length === 0);
    await cluster.kubectl.stop("by-cli");
  });
});
