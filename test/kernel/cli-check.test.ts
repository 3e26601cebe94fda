import { App, Chart } from "cdk8s";
import { LinkerdCni, LinkerdNamespace } from "../../constructs";
import { type Check, CliCluster, cliMissing } from "../support/cli";
import type { ApiObject } from "../support/real-api";
import { suite } from "../support/requirements";

const NAMESPACE = "linkerd-cni";

const failed = (checks: readonly Check[]) =>
  checks.filter(({ result }) => result === "error").map(({ description, error }) => `${description}: ${error}`);

suite("l5d-cni check, with kubectl and a real API server", cliMissing(), () => {
  let cluster!: CliCluster;

  beforeAll(async () => {
    cluster = await CliCluster.start();
  });
  afterAll(() => cluster?.close());

  test("without an installation, says so once, with the remedy", async () => {
    const { code, out } = await cluster.run(["check"]);
    expect(code).toBe(1);
    expect(out).toMatch(/√ the Kubernetes API answers: v1\./);
    expect(out).toContain("DaemonSet linkerd-cni/linkerd-cni is not there: the plugin is not installed");
    expect(out).toContain("Status check results are ×: 1 failed");
    expect(out).toContain("helm install linkerd-cni -n linkerd-cni");
    expect(out).not.toContain("\u001b[");
  });

  test("runs as a plugin of kubectl", async () => {
    expect(await cluster.kubectl("l5d-cni", "check")).toMatch(/√ the Kubernetes API answers: v1\./);
  });

  describe("with the chart's objects and one node's pod that does not start", () => {
    beforeAll(async () => {
      const chart = new Chart(new App(), "chart");
      new LinkerdNamespace(chart, "namespace", { name: NAMESPACE });
      new LinkerdCni(chart, "cni", { repairController: { enabled: true }, namespace: NAMESPACE });
      await cluster.api.create(...(chart.toJson() as ApiObject[]));
      await cluster.node("one", NAMESPACE, true);
      await cluster.node("two", NAMESPACE, false);
      const numbers = { desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2 };
      await cluster.patch(`/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/linkerd-cni/status`, {
        status: { observedGeneration: 1, numberMisscheduled: 0, numberReady: 1, ...numbers },
      });
    });

    test("names the node, in its pod's own words, and finds all else in order", async () => {
      const { code, checks } = await cluster.check();
      expect(failed(checks)).toEqual([
        "node two has a ready pod: pod linkerd-cni-two is not ready: container install-cni: ImagePullBackOff: no such image",
      ]);
      expect(code).toBe(1);
    });
  });

  test("only a wrong namespace is reported", async () => {
    const { code, checks } = await cluster.check("--cni-namespace", "default");
    const found = "DaemonSet linkerd-cni is there: not in namespace default, but found in linkerd-cni";
    expect([code, failed(checks)]).toEqual([1, [found]]);
    expect(checks).toHaveLength(2);
  });

  test("a user without any permission is told so once", async () => {
    const { code, out } = await cluster.run(["check"], { kubeconfig: cluster.reader });
    expect(out).toContain("√ the Kubernetes API answers");
    expect(out).toMatch(/not allowed to read .*daemonsets, .*nodes.*: cannot check anything/);
    expect(out).toContain("Status check results are ×: 1 failed");
    expect(out).toContain("Error from server (Forbidden)");
    expect(out).toContain("ask as a user who may read it");
    expect(code).toBe(1);
  });

  test("no kubectl, and a server that does not answer", async () => {
    const missing = await cluster.run(["check"], { path: cluster.folder });
    expect([missing.code, missing.out]).toEqual([1, expect.stringContaining("kubectl is not on PATH: install it")]);
    await cluster.api.down();
    const { code, out } = await cluster.run(["check", "--kubeconfig", cluster.admin]);
    expect([code, out]).toEqual([1, expect.stringContaining("× the Kubernetes API answers")]);
    expect(out).toContain("was refused");
  });
});
