import { App, Chart } from "cdk8s";
import { LinkerdCni, LinkerdNamespace } from "../../constructs";
import { CliCluster, cliMissing, settings, shopPod } from "../support/cli";
import type { ApiObject } from "../support/real-api";
import { suite } from "../support/requirements";
import { until } from "../support/until";

const injected = {
  "linkerd.io/created-by": "linkerd/proxy-injector edge-26.5.1",
  "linkerd.io/proxy-version": "edge-26.5.1",
};

suite("l5d-cni explain, with kubectl and a real API server", cliMissing(), () => {
  let cluster!: CliCluster;

  beforeAll(async () => {
    cluster = await CliCluster.start();
    const annotations = settings({ "skip-outbound-ports": "3306" });
    const controlPlane = { "linkerd.io/control-plane-component": "destination" };
    await cluster.api.create(
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop", annotations } } as ApiObject,
      shopPod("manual", { annotations: { "linkerd.io/proxy-version": "edge" } }, ["app", "linkerd-proxy"]),
      shopPod("injected", { annotations: { ...injected, ...settings({ "skip-inbound-ports": "25" }) } }, [
        "linkerd-proxy",
      ]),
      shopPod("plain", {}, ["app"]),
      shopPod("wrong", { annotations: { ...injected, ...settings({ "proxy-uid": "root" }) } }, ["linkerd-proxy"]),
      shopPod("destination", { annotations: injected, labels: controlPlane }, ["linkerd-proxy"]),
    );
  });

  afterAll(() => cluster?.close());

  test("uses the chart's defaults without a ConfigMap, and reports it", async () => {
    const { code, out } = await cluster.run(["explain", "shop/manual"]);
    expect(code).toBe(0);
    expect(out).toContain("shop/manual: would be redirected");
    expect(out).toContain("there is no ConfigMap linkerd-cni-config here");
    expect(out).toMatch(/not to port +3306 +config.linkerd.io\/skip-outbound-ports on namespace shop\n/);
  });

  describe("with the chart's objects", () => {
    beforeAll(async () => {
      const chart = new Chart(new App(), "chart");
      new LinkerdNamespace(chart, "namespace", { name: "linkerd-cni" });
      new LinkerdCni(chart, "cni", { ignoreInboundPorts: "9000", disableIPv6: false, namespace: "linkerd-cni" });
      await cluster.api.create(...(chart.toJson() as ApiObject[]));
    });

    test("uses the ConfigMap", async () => {
      const { code, out } = await cluster.run(["explain", "-n", "shop", "injected", "--rules"]);
      expect(code).toBe(0);
      expect(out).toMatch(/not to port +4191,4190,9000 +ConfigMap linkerd-cni\/linkerd-cni-config\n/);
      expect(out).toMatch(/not to port +25 +config.linkerd.io\/skip-inbound-ports on pod shop\/injected\n/);
      expect(out).toMatch(/not of user +2102 +ConfigMap linkerd-cni\/linkerd-cni-config \(chart default\)\n/);
      expect(out).toContain("skip-outbound-ports on namespace shop does not count: the injector copied");
      expect(out).toContain("# ip6tables\n*nat");
      expect(out).toContain("--dports 4191,4190,9000,25");
    });

    test("finds the pods of a Deployment by their owners", async () => {
      const labels = { app: "web" };
      const template = { metadata: { labels }, spec: shopPod("", {}, ["app"]).spec };
      const owned = async (kind: string, owner?: object) => {
        const metadata = { name: "web", namespace: "shop", ...(owner && { ownerReferences: [owner] }) };
        const spec = { selector: { matchLabels: labels }, template };
        await cluster.api.create({ apiVersion: "apps/v1", kind, metadata, spec } as ApiObject);
        const uid = await cluster.kubectl("get", kind, "web", "-n", "shop", "-o", "jsonpath={.metadata.uid}");
        return { apiVersion: "apps/v1", kind, name: "web", uid };
      };
      const ownerReferences = [await owned("ReplicaSet", await owned("Deployment"))];
      const metadata = { labels, annotations: { "linkerd.io/proxy-version": "edge" }, ownerReferences };
      await cluster.api.create(
        shopPod("web-1", metadata, ["app", "linkerd-proxy"]),
        shopPod("web-2", metadata, ["app", "linkerd-proxy"]),
      );
      const { code, out } = await cluster.run(["explain", "deploy/web", "-n", "shop"]);
      expect(code).toBe(0);
      expect(out).toContain("shop/web-1: would be redirected: it has a container linkerd-proxy");
      expect(out).toContain("the same: shop/web-2");
      expect(out).not.toContain("shop/injected");
    });

    test.each(["yaml", "json"])("says the same about what kubectl prints as %s", async (format) => {
      const input = await cluster.kubectl("get", "pod,configmap,namespace,daemonset,service", "-A", "-o", format);
      const fromFile = await cluster.run(["explain", "shop/injected", "-f", "-"], { input });
      expect(fromFile).toEqual(await cluster.run(["explain", "shop/injected"]));
    });
  });

  test("kubectl's refusals are quoted, and unreadable objects besides the pod are omitted", async () => {
    const { kubeconfig } = { kubeconfig: cluster.reader };
    const refused = await cluster.run(["explain", "shop/manual"], { kubeconfig });
    expect(refused.code).toBe(1);
    expect(refused.err).toMatch(/^l5d-cni: kubectl get: Error from server \(Forbidden\): pods "manual" is forbidden/);
    const name = "pods";
    const group = "rbac.authorization.k8s.io";
    const rules = [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }];
    const roleRef = { apiGroup: group, kind: "ClusterRole", name };
    const subjects = [{ apiGroup: group, kind: "User", name: "reader" }];
    const common = { apiVersion: `${group}/v1`, metadata: { name } };
    await cluster.api.create(
      { ...common, kind: "ClusterRole", rules } as ApiObject,
      { ...common, kind: "ClusterRoleBinding", roleRef, subjects } as ApiObject,
    );
    let ended = refused;
    await until("the right to get pods", async () => {
      ended = await cluster.run(["explain", "shop/manual"], { kubeconfig });
      return ended.code === 0;
    });
    const { out, err } = ended;
    expect(err).toContain('namespaces "shop" is forbidden');
    expect(out).toContain("namespace shop is not known here: its annotations would count too");
  });

  test("no kubectl, and a context that is not there", async () => {
    const missing = await cluster.run(["explain", "shop/manual"], { path: cluster.folder });
    expect([missing.code, missing.err]).toEqual([1, "l5d-cni: kubectl is not on PATH: install it\n"]);
    const unknown = await cluster.run(["explain", "shop/manual", "--context", "nowhere"]);
    expect(unknown.err).toContain('context "nowhere" does not exist');
  });
});
