import { App, Chart } from "cdk8s";
import { LinkerdCni, LinkerdNamespace } from "../../constructs";
import { chartReference } from "../../constructs/version";
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
    const daemonSet = `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/linkerd-cni`;

    const counted = (numberReady: number) => {
      const numbers = { desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberReady };
      return cluster.patch(`${daemonSet}/status`, {
        status: { observedGeneration: 1, numberMisscheduled: 0, ...numbers },
      });
    };

    beforeAll(async () => {
      const chart = new Chart(new App(), "chart");
      new LinkerdNamespace(chart, "namespace", { name: NAMESPACE });
      new LinkerdCni(chart, "cni", { repairController: { enabled: true }, namespace: NAMESPACE });
      await cluster.api.create(...(chart.toJson() as ApiObject[]));
      await cluster.node("one", NAMESPACE, true);
      await cluster.node("two", NAMESPACE, false);
      await counted(1);
    });

    test("names the node, in its pod's own words, and finds all else in order", async () => {
      const { code, checks } = await cluster.check();
      expect(failed(checks)).toEqual([
        "node two has a ready pod: pod linkerd-cni-two is not ready: container install-cni: ImagePullBackOff: no such image",
      ]);
      expect(code).toBe(1);
    });

    test("waits until everything is ready, and then succeeds", async () => {
      const waiting = cluster.run(["check", "--wait", "120s"]);
      await cluster.patch(`/api/v1/namespaces/${NAMESPACE}/pods/linkerd-cni-two/status`, {
        status: { conditions: [{ type: "Ready", status: "True" }] },
      });
      await counted(2);
      const { code, out } = await waiting;
      expect(out).toContain("√ 2 nodes have a ready pod");
      expect(out).toMatch(/√ DaemonSet linkerd-cni is rolled out: 2 desired, 2 ready, 2 updated/);
      expect(out).toContain("Status check results are √");
      expect(code).toBe(0);
    });

    test("reports why a node has no pod, from the DaemonSet's Event", async () => {
      const labels = { "kubernetes.io/os": "linux" };
      const message = 'pods "linkerd-cni-" is forbidden: violates PodSecurity "restricted:latest"';
      const involvedObject = { kind: "DaemonSet", namespace: NAMESPACE, name: "linkerd-cni" };
      const event = { type: "Warning", reason: "FailedCreate", message, involvedObject };
      const metadata = { name: "linkerd-cni.1", namespace: NAMESPACE };
      await cluster.api.create(
        { apiVersion: "v1", kind: "Node", metadata: { name: "three", labels } } as ApiObject,
        { apiVersion: "v1", kind: "Event", metadata, ...event } as ApiObject,
      );
      await cluster.patch(`${daemonSet}/status`, { status: { desiredNumberScheduled: 3, updatedNumberScheduled: 3 } });
      expect(failed((await cluster.check()).checks)).toEqual([`node three has a ready pod: it has no pod: ${message}`]);
      await cluster.api.json({ method: "DELETE", path: "/api/v1/nodes/three" });
      await counted(2);
    });

    test("compares roles with the needs of the found DaemonSet", async () => {
      const path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/linkerd-cni";
      const before = await cluster.api.json<{ rules: object[] }>({ path });
      const rules = [{ apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"] }];
      await cluster.patch(path, { rules }, "merge");
      const [said = "", ...others] = failed((await cluster.check()).checks);
      expect(others).toEqual([]);
      const rights = [
        "get namespaces",
        "get daemonsets.apps linkerd-cni",
        "delete pods",
        "create events.events.k8s.io",
      ];
      for (const right of rights) expect(said).toContain(right);
      expect(said).not.toContain("get pods");
      await cluster.patch(path, { rules: before.rules }, "merge");
      expect(failed((await cluster.check()).checks)).toEqual([]);
    });

    test("finds the DaemonSet that another chart left in another namespace", async () => {
      const labels = { "k8s-app": "linkerd-cni" };
      const spec = { containers: [{ name: "install-cni", image: "registry.invalid/image" }] };
      const other = {
        apiVersion: "apps/v1",
        kind: "DaemonSet",
        metadata: { name: "linkerd-cni", namespace: "default", labels },
        spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
      };
      await cluster.api.create(other);
      expect(failed((await cluster.check()).checks)).toEqual([
        "no other DaemonSet installs into the nodes: default/linkerd-cni writes the same files on the nodes",
      ]);
      expect(failed((await cluster.check("--cni-namespace", "default")).checks)).toContain(
        "DaemonSet linkerd-cni is there: DaemonSet default/linkerd-cni is not of this project's chart",
      );
      await cluster.api.json({ method: "DELETE", path: "/apis/apps/v1/namespaces/default/daemonsets/linkerd-cni" });
    });
  });

  test("only a wrong namespace is reported", async () => {
    const { code, checks } = await cluster.check("--cni-namespace", "default");
    const found = "DaemonSet linkerd-cni is there: not in namespace default, but found in linkerd-cni";
    expect([code, failed(checks)]).toEqual([1, [found]]);
    expect(checks).toHaveLength(2);
  });

  test("before an installation, reports what exists and what nodes of unknown platforms need", async () => {
    const { code, out } = await cluster.run(["check", "--pre"]);
    expect(code).toBe(0);
    expect(out).toContain(
      "nodes one, two (no platform with a preset): not known: each distribution configures the container runtime",
    );
    expect(out).toContain("DaemonSet linkerd-cni/linkerd-cni is there");
    expect(out).toContain(
      `helm install linkerd-cni -n linkerd-cni ${chartReference("linkerd2-cni")} --set destCNINetDir=CONF_DIR`,
    );
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
