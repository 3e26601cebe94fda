import { App, Chart } from "cdk8s";
import { HelmChart } from "../helm/index";
import { LinkerdCni, type LinkerdCniProps } from ".";

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly rules: readonly object[];
  readonly spec: { readonly template: { readonly spec: Readonly<Record<string, readonly Part[]>> } };
}

interface Part {
  readonly name: string;
  readonly env?: readonly object[];
}

const rule = { apiGroups: [""], resources: ["events"], verbs: ["list"] };
const audit = { name: "audit", image: "audit:1" };
const wait = { name: "wait", image: "wait:1" };
const log = { name: "log", hostPath: { path: "/var/log/pods" } };
const zone = { name: "ZONE", value: "a" };

function synthesized(chart: Chart, props: LinkerdCniProps, add: (cni: LinkerdCni) => void) {
  const cni = new LinkerdCni(chart, "cni", props);
  add(cni);
  const manifests = chart.toJson() as Manifest[];
  return (kind: string, name = "linkerd-cni") =>
    manifests.find((made) => made.kind === kind && made.metadata.name === name);
}

const makers: readonly (readonly [string, (app: App) => Chart])[] = [
  ["plain manifests", (app) => new Chart(app, "c")],
  ["a Helm chart", (app) => new HelmChart(app, "c")],
];

test.each(makers)("in %s, a rule and an annotation take one line each", (_, make) => {
  const found = synthesized(make(new App()), {}, (cni) => {
    cni.addRule(rule);
    cni.daemonSet.metadata.addAnnotation("example.com/owner", "platform");
  });
  expect(found("ClusterRole")?.rules.at(-1)).toEqual(rule);
  expect(found("DaemonSet")?.metadata.annotations).toMatchObject({ "example.com/owner": "platform" });
});

/** The pods that can be added to, with the names of their containers. */
const pods = [
  { name: "linkerd-cni", of: (cni: LinkerdCni) => cni, own: ["install-cni", "repair-controller"] },
  { name: "linkerd-cni-nri", of: (cni: LinkerdCni) => cni.nri, own: ["nri"] },
];

describe.each(pods)("the pods of DaemonSet $name", ({ name, of, own }) => {
  const enabled = { nri: { enabled: true }, repairController: { enabled: true } };
  const specOf = (chart: Chart, props: LinkerdCniProps, add: (cni: LinkerdCni) => void) =>
    synthesized(chart, { ...enabled, ...props }, add)("DaemonSet", name)?.spec.template.spec ?? {};
  const addAll = (cni: LinkerdCni) => {
    of(cni).addContainer(audit);
    of(cni).addInitContainer(wait);
    of(cni).addVolume(log);
    of(cni).addEnv(zone);
  };

  test.each(makers)("get a container, an init container, a volume and a variable, in %s", (_, make) => {
    const before = specOf(make(new App()), {}, () => {});
    const after = specOf(make(new App()), {}, addAll);
    const { containers = [], initContainers, volumes } = after;
    expect(containers.map((container) => container.name)).toEqual([...own, "audit"]);
    expect(containers.at(-1)).toEqual(audit);
    expect(initContainers?.at(-1)).toEqual(wait);
    expect(volumes).toEqual([...(before["volumes"] ?? []), log]);
    const environments = (spec: typeof before) => spec["containers"]?.slice(0, own.length).map(({ env }) => env);
    expect(environments(after)).toEqual(environments(before)?.map((env = []) => [...env, zone]));
  });

  test("get them after those of the values", () => {
    const given = { name: "REGION", value: "b" };
    const spec = specOf(new Chart(new App(), "c"), { extraEnv: [given] }, addAll);
    for (const { env } of spec["containers"]?.slice(0, own.length) ?? []) expect(env?.slice(-2)).toEqual([given, zone]);
  });
});

test("the installer's pods have the volumes and init containers of the values before added ones", () => {
  const mounted = { ...wait, name: "copy", volumeMounts: [{ name: "tools", mountPath: "/tools" }] };
  const tools = { name: "tools", emptyDir: {} };
  const props: LinkerdCniProps = { extraInitContainers: [mounted], extraVolumes: [tools], nri: { enabled: true } };
  const found = synthesized(new Chart(new App(), "c"), props, (cni) => {
    cni.addInitContainer(wait);
    cni.addVolume(log);
  });
  const { initContainers, volumes } = found("DaemonSet")?.spec.template.spec ?? {};
  expect(initContainers).toEqual([mounted, wait]);
  expect(volumes?.slice(-2)).toEqual([tools, log]);
  expect(JSON.stringify(found("DaemonSet", "linkerd-cni-nri"))).not.toContain("tools");
});

test("resources of features are public members", () => {
  const chart = new Chart(new App(), "c");
  const cni = new LinkerdCni(chart, "cni", {
    nri: { enabled: true },
    networkPolicy: { enabled: true },
    priorityClassName: "system-node-critical",
    podMonitor: { enabled: true },
    prometheusRule: { enabled: true },
    grafanaDashboard: { enabled: true },
  });
  const { role, roleBinding, nri, monitoring, networkPolicy, resourceQuota } = cni;
  const { podMonitor, prometheusRule, dashboard } = monitoring;
  const nris = [nri.networkPolicy, nri.daemonSet];
  const members = [role, roleBinding, ...nris, podMonitor, prometheusRule, dashboard];
  const objects = new Set(cni.node.findAll());
  for (const member of [...members, networkPolicy, resourceQuota]) expect(objects).toContain(member);
});
