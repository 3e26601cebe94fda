import { App, Chart } from "cdk8s";
import { HelmChart } from "../helm/index";
import { LinkerdCni } from ".";

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly rules: readonly object[];
  readonly spec: { readonly template: { readonly spec: Readonly<Record<string, readonly { name: string }[]>> } };
}

const rule = { apiGroups: [""], resources: ["events"], verbs: ["list"] };

function added(chart: Chart) {
  const cni = new LinkerdCni(chart, "cni");
  cni.addContainer({ name: "audit", image: "audit:1" });
  cni.addVolume({ name: "log", hostPath: { path: "/var/log/pods" } });
  cni.addRule(rule);
  cni.daemonSet.metadata.addAnnotation("example.com/owner", "platform");
  const manifests = chart.toJson() as Manifest[];
  const named = (kind: string) => manifests.find((made) => made.kind === kind && made.metadata.name === "linkerd-cni");
  return { daemonSet: named("DaemonSet"), role: named("ClusterRole") };
}

test.each([
  ["plain manifests", (app: App) => new Chart(app, "c")],
  ["a Helm chart", (app: App) => new HelmChart(app, "c")],
])("in %s, a sidecar, a volume, a rule and an annotation take one line each", (_, make) => {
  const { daemonSet, role } = added(make(new App()));
  const spec = daemonSet?.spec.template.spec;
  expect(spec?.["containers"]?.at(-1)).toEqual({ name: "audit", image: "audit:1" });
  expect(spec?.["containers"]?.at(0)).toMatchObject({ name: "install-cni" });
  expect(spec?.["volumes"]?.at(-1)).toEqual({ name: "log", hostPath: { path: "/var/log/pods" } });
  expect(role?.rules.at(-1)).toEqual(rule);
  expect(daemonSet?.metadata.annotations).toMatchObject({ "example.com/owner": "platform" });
});

test("resources of features are public members", () => {
  const chart = new Chart(new App(), "c");
  const cni = new LinkerdCni(chart, "cni", {
    // The NRI plugin then has its own permissions.
    pluginLog: false,
    nri: { enabled: true },
    networkPolicy: { enabled: true },
    priorityClassName: "system-node-critical",
    podMonitor: { enabled: true },
    prometheusRule: { enabled: true },
    grafanaDashboard: { enabled: true },
  });
  const { plugin, nri, monitoring, networkPolicy, resourceQuota } = cni;
  const { podMonitor, prometheusRule, dashboard } = monitoring;
  const { serviceAccount, clusterRole, clusterRoleBinding, networkPolicy: ofNri, daemonSet } = nri;
  const nris = [serviceAccount, clusterRole, clusterRoleBinding, ofNri, daemonSet];
  const members = [...Object.values(plugin), ...nris, podMonitor, prometheusRule, dashboard];
  const objects = new Set(cni.node.findAll());
  for (const member of [...members, networkPolicy, resourceQuota]) expect(objects).toContain(member);
});
