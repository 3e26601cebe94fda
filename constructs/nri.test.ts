import { App, Chart } from "cdk8s";
import { LinkerdCni, type LinkerdCniProps } from "./linkerd-cni";
import { type Manifest, synthesized } from "./manifests.testing";

interface Mount {
  readonly name: string;
  readonly mountPath: string;
}

interface Pod {
  readonly automountServiceAccountToken: boolean;
  readonly containers: readonly [
    {
      readonly env: readonly { readonly name: string; readonly value?: string }[];
      readonly volumeMounts: readonly Mount[];
      readonly securityContext: object;
    },
  ];
  readonly volumes: readonly object[];
}

interface DaemonSet extends Manifest {
  readonly spec: {
    readonly selector: { readonly matchLabels: object };
    readonly updateStrategy: object;
    readonly template: { readonly metadata: { readonly annotations: Record<string, string> }; readonly spec: Pod };
  };
}

const enabled = { enabled: true };

const kindsOf = (props: LinkerdCniProps) =>
  synthesized(props).flatMap(({ kind, metadata: { name } }) => (name.startsWith("linkerd-cni-nri") ? [kind] : []));

const find = <T>(kind: string, props: LinkerdCniProps, name = "linkerd-cni-nri") =>
  synthesized(props).find((item) => item.kind === kind && item.metadata.name === name) as unknown as T;
const daemonSet = (props: LinkerdCniProps = {}) => find<DaemonSet>("DaemonSet", { nri: enabled, ...props });
const pod = (props: LinkerdCniProps = {}) => daemonSet(props).spec.template.spec;

test("by default none of its resources exist", () => {
  const all: LinkerdCniProps = { networkPolicy: enabled, podMonitor: enabled };
  expect(kindsOf({ ...all, nri: { require: { admissionPolicy: "v1" } } })).toEqual([]);
  expect(kindsOf({ nri: enabled })).toEqual(["DaemonSet"]);
  expect(kindsOf({ ...all, nri: { enabled: true, require: { admissionPolicy: "v1" } } }).sort()).toEqual([
    "DaemonSet",
    ...["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"],
    ...["NetworkPolicy", "PodMonitor"],
  ]);
});

test("it has only two capabilities, whatever the installer has", () => {
  const installers: LinkerdCniProps = { privileged: true, hostNetwork: true, healthPort: 0 };
  for (const props of [{}, installers]) {
    expect(pod(props).containers[0].securityContext).toEqual({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"], add: ["NET_ADMIN", "SYS_ADMIN"] },
      readOnlyRootFilesystem: true,
      runAsUser: 0,
      seccompProfile: { type: "RuntimeDefault" },
    });
    expect(Object.keys(pod(props)).filter((key) => key.startsWith("host"))).toEqual([]);
  }
  expect(pod({ platform: "openshift" }).containers[0].securityContext).toMatchObject({
    seLinuxOptions: { type: "spc_t" },
  });
});

test("it requests resources, so that a busy node does not run it last", () => {
  const resources = (props?: LinkerdCniProps) => (pod(props).containers[0] as { resources?: object }).resources;
  expect(resources()).toEqual({ requests: { cpu: "50m", memory: "32Mi" } });
  const nothing = { cpu: { request: "" }, memory: { request: "" } };
  expect(resources({ nri: { enabled: true, resources: nothing } })).toBeUndefined();
});

test("it never has a token, nor an account of its own", () => {
  for (const props of [{}, { podLookup: "api" }, { pluginLog: false }] as const) {
    expect(pod(props)).toMatchObject({ serviceAccountName: "linkerd-cni", automountServiceAccountToken: false });
    expect(kindsOf({ ...props, nri: enabled })).toEqual(["DaemonSet"]);
  }
});

test("the directories are the node's, and new network namespaces of pods propagate", () => {
  const nri = { enabled: true, socketDir: "/run/a", netnsDir: "/run/b", index: "07" };
  const { containers, volumes } = pod({ nri, chained: false, runDir: "/run/c" });
  expect(containers[0].volumeMounts).toEqual([
    { name: "nri-socket-dir", mountPath: "/run/a" },
    { name: "netns-dir", mountPath: "/run/b", mountPropagation: "HostToContainer", readOnly: true },
    { name: "linkerd-run-dir", mountPath: "/run/linkerd-cni" },
  ]);
  const type = "DirectoryOrCreate";
  expect(volumes).toEqual([
    { name: "nri-socket-dir", hostPath: { path: "/run/a", type } },
    { name: "netns-dir", hostPath: { path: "/run/b", type } },
    { name: "linkerd-run-dir", hostPath: { path: "/run/c", type } },
  ]);
  expect(containers[0].env.slice(1)).toEqual([
    { name: "LOG_LEVEL", value: "info" },
    { name: "NRI_SOCKET_DIR", value: "/run/a" },
    { name: "NRI_NETNS_DIR", value: "/run/b" },
    { name: "CHAINED", value: "false" },
    { name: "NRI_INDEX", value: "07" },
  ]);
  expect(pod({ pluginLog: false }).volumes).toHaveLength(3);
});

test("it runs where the installer runs, starts its successor first, and has its own labels", () => {
  const props: LinkerdCniProps = {
    nodeTaint: enabled,
    tolerations: [],
    priorityClassName: "system-node-critical",
    commonLabels: { team: "mesh", "k8s-app": "other" },
    updateStrategy: { type: "OnDelete" },
  };
  const { metadata, spec } = daemonSet(props);
  expect(metadata.labels).toEqual({ team: "mesh", "k8s-app": "linkerd-cni-nri", "linkerd.io/cni-resource": "true" });
  expect(spec).toMatchObject({
    selector: { matchLabels: { "k8s-app": "linkerd-cni-nri" } },
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    template: {
      metadata: { annotations: { "linkerd.io/inject": "disabled" }, labels: { "k8s-app": "linkerd-cni-nri" } },
      spec: {
        priorityClassName: "system-node-critical",
        nodeSelector: { "kubernetes.io/os": "linux" },
        tolerations: [{ key: "linkerd.io/cni-not-ready", operator: "Exists" }],
      },
    },
  });
});

test("nodeSelector and affinity place the pods of both DaemonSets and the pod of helm test", () => {
  const affinity = { podAffinity: { a: "b" }, nodeAffinity: { c: "d" } };
  const chart = new Chart(new App(), "chart");
  new LinkerdCni(chart, "cni", { nri: enabled, nodeSelector: { pool: "a" }, affinity }).addHelmTest();
  const pods = (chart.toJson() as { kind: string; spec: Pod & DaemonSet["spec"] }[]).flatMap(({ kind, spec }) => {
    if (kind === "Pod") return [spec];
    return kind === "DaemonSet" ? [spec.template.spec] : [];
  });
  expect(pods).toHaveLength(3);
  const nodeSelector = { pool: "a", "kubernetes.io/os": "linux" };
  for (const each of pods) expect(each).toMatchObject({ nodeSelector, affinity });
});

test("a changed configuration replaces the pods of both DaemonSets", () => {
  const sums = (props: LinkerdCniProps) =>
    ["linkerd-cni", "linkerd-cni-nri"].map(
      (name) =>
        find<DaemonSet>("DaemonSet", { nri: enabled, ...props }, name).spec.template.metadata.annotations[
          "checksum/config"
        ],
    );
  const [before, after] = [sums({}), sums({ proxyUID: 7 })];
  expect(new Set(before).size).toBe(1);
  expect(after[1]).not.toBe(before[1]);
});

test("the installer publishes its Events, and the repair controller waits for it", () => {
  const installer = (props: LinkerdCniProps) => JSON.stringify(find("DaemonSet", props, "linkerd-cni"));
  const rules = (props: LinkerdCniProps) => JSON.stringify(find("ClusterRole", props, "linkerd-cni"));
  const repaired: LinkerdCniProps = { repairController: enabled };
  expect(installer(repaired)).not.toMatch(/NRI_EVENTS|wait-for-nri/);
  const both: LinkerdCniProps = { ...repaired, nri: enabled };
  expect(installer(both)).toContain('{"name":"NRI_EVENTS","value":"true"}');
  expect(installer(both)).toContain('"--wait-for-nri=true"');
  expect(rules({ rbac: { minimal: true } })).not.toContain("events");
  expect(rules({ rbac: { minimal: true }, nri: enabled })).toContain('"resources":["events"],"verbs":["create"]');
});

test.each(["nft", "legacy", "plain"] as const)("mode %s, which calls programs of the host, is refused", (mode) => {
  const message = `iptablesMode: "${mode}" needs iptables of the host, which the NRI plugin cannot call: with nri.enabled set iptablesMode to auto or native`;
  expect(() => synthesized({ nri: enabled, iptablesMode: mode })).toThrow(message);
  expect(() => synthesized({ iptablesMode: mode })).not.toThrow();
});

test("probes and metrics are reachable and scraped", () => {
  const from = [{ podSelector: { matchLabels: { app: "prometheus" } } }];
  const props: LinkerdCniProps = { nri: enabled, networkPolicy: { enabled: true, from }, podMonitor: enabled };
  expect(find("NetworkPolicy", props)).toMatchObject({
    spec: {
      podSelector: { matchLabels: { "k8s-app": "linkerd-cni-nri" } },
      policyTypes: ["Ingress"],
      ingress: [{ from, ports: [{ port: 9992, protocol: "TCP" }] }],
    },
  });
  expect(find("PodMonitor", props)).toMatchObject({
    spec: {
      selector: { matchLabels: { "k8s-app": "linkerd-cni-nri" } },
      podMetricsEndpoints: [{ port: "nri-admin", path: "/metrics" }],
    },
  });
});
