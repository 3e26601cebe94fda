import { readFileSync } from "node:fs";
import { join } from "node:path";
import { App, Chart, JsonPatch } from "cdk8s";
import { parseStanza } from "../cni/parse-stanza";
import { IPTABLES_MODES } from "../cni/stanza";
import { LinkerdCni, type LinkerdCniProps } from "./linkerd-cni";
import { found, type Manifest, synthesized } from "./manifests.testing";
import { LinkerdNamespace } from "./namespace";
import { version } from "./version";

const stanza = (props: LinkerdCniProps = {}) =>
  JSON.parse((found("ConfigMap", props) as unknown as { data: Record<string, string> }).data["cni_network_config"]!);

interface Container {
  name: string;
  image: string;
  env: { name: string; value?: string }[];
  securityContext?: object;
  volumeMounts?: { mountPath: string }[];
  resources?: object;
  command?: string[];
}

const podOf = (props: LinkerdCniProps = {}) =>
  (
    found("DaemonSet", props) as unknown as {
      spec: {
        template: {
          metadata: { annotations: Record<string, string> };
          spec: { containers: Container[]; terminationGracePeriodSeconds: number };
        };
      };
    }
  ).spec.template;

const containers = (props: LinkerdCniProps = {}) => podOf(props).spec.containers;

test("the version is the package's", () => {
  expect(version).toBe(JSON.parse(readFileSync(join(__dirname, "..", "package.json"), "utf8")).version);
});

test("a digest of the image wins over its tag, in every container", () => {
  const digest = `sha256:${"0123456789abcdef".repeat(4)}`;
  const image = { name: "mirror/linkerd-cni", version: "1", digest };
  const images = (props: LinkerdCniProps) => containers(props).map((container) => container.image);
  const repairController = { enabled: true };
  expect(images({ image, repairController })).toEqual(Array(2).fill(`mirror/linkerd-cni@${digest}`));
  expect(images({ image: { ...image, digest: "" }, repairController })).toEqual(Array(2).fill("mirror/linkerd-cni:1"));
});

test("every container has the user's variables after its own, and the pod has the user's grace period", () => {
  const extraEnv = [{ name: "KUBERNETES_SERVICE_HOST", value: "api.example.com" }];
  const environments = (props: LinkerdCniProps) => {
    const pods = synthesized({ ...props, repairController: { enabled: true }, nri: { enabled: true } })
      .filter(({ kind }) => kind === "DaemonSet")
      .map(
        (daemonSet) => daemonSet as unknown as { spec: { template: { spec: { containers: { env?: object[] }[] } } } },
      );
    return pods.flatMap(({ spec }) => spec.template.spec.containers).map(({ env = [] }) => env);
  };
  const before = environments({});
  expect(before).toHaveLength(3);
  expect(environments({ extraEnv })).toEqual(before.map((env) => [...env, ...extraEnv]));
  const seconds = (props: LinkerdCniProps) => podOf(props).spec.terminationGracePeriodSeconds;
  expect([seconds({}), seconds({ terminationGracePeriodSeconds: 90 })]).toEqual([30, 90]);
});

test("extra objects are unchanged, without the labels that pruning selects", () => {
  const extra = { apiVersion: "v1", kind: "Secret", metadata: { name: "mine" }, stringData: { a: "{{ .Values }}" } };
  expect(found("Secret", { extraObjects: [extra], commonLabels: { team: "mesh" } })).toEqual(extra);
});

test("every resource has the label that pruning selects, and the user's", () => {
  for (const { metadata } of synthesized({ commonLabels: { team: "mesh" } })) {
    expect(metadata.labels).toMatchObject({ "linkerd.io/cni-resource": "true", team: "mesh" });
  }
});

test("the installer may create tokens of its own account alone, and values of one for the plugin have no effect", () => {
  expect(found("Role", {})).toMatchObject({
    rules: [{ resources: ["serviceaccounts/token"], resourceNames: ["linkerd-cni"], verbs: ["create"] }],
  });
  const former = { pluginToken: { dedicated: true, expirationSeconds: 600, onNode: true } } as LinkerdCniProps;
  expect(synthesized(former)).toEqual(synthesized({}));
});

test("every resource has the user's annotations besides its own, pods do not", () => {
  const enabled = { enabled: true };
  const everything: LinkerdCniProps = {
    pluginLog: false,
    priorityClassName: "system-node-critical",
    platform: "openshift",
    nri: { enabled: true, require: { admissionPolicy: "v1" } },
    namespaceUIDRange: { admissionPolicy: "v1" },
    nodeTaint: { enabled: true, admissionPolicy: "v1" },
    networkPolicy: enabled,
    podMonitor: enabled,
    prometheusRule: enabled,
    grafanaDashboard: enabled,
  };
  const commonAnnotations = { "argocd.argoproj.io/sync-wave": "-1", "linkerd.io/created-by": "me" };
  const annotationsOf = (props: LinkerdCniProps) =>
    synthesized({ ...everything, ...props }).map(({ metadata }) => metadata.annotations);
  expect(annotationsOf({ commonAnnotations })).toEqual(
    annotationsOf({}).map((own) => ({ ...commonAnnotations, ...own })),
  );
  expect(podOf({ commonAnnotations }).metadata).toEqual(podOf().metadata);
});

test("labels of users do not replace the chart's own", () => {
  const labels = { "k8s-app": "other", "linkerd.io/cni-resource": "false" };
  expect(found("DaemonSet", { commonLabels: labels, podLabels: labels })).toMatchObject({
    metadata: { labels: { "k8s-app": "linkerd-cni", "linkerd.io/cni-resource": "true" } },
    spec: { template: { metadata: { labels: { "k8s-app": "linkerd-cni", "linkerd.io/cni-resource": "true" } } } },
  });
});

test.each(IPTABLES_MODES)("the stanza has mode %s in a form that linkerd's plugin also accepts", (iptablesMode) => {
  const made = stanza({ iptablesMode });
  expect(["nft", "legacy", "plain"]).toContain(made.linkerd["iptables-mode"]);
  expect(parseStanza(made, "pods").linkerd["iptables-mode"]).toBe(iptablesMode);
});

test("the stanza with changed values", () => {
  const { linkerd, ...rest } = stanza({
    namespace: "mesh",
    proxyGID: 0,
    portsToRedirect: "80, 443",
    ignoreInboundPorts: "25,8000-8100",
    ignoreOutboundPorts: "3306",
    disableIPv6: false,
    logLevel: "debug",
    runDir: "/run/k3s/linkerd-cni",
  });
  expect(linkerd).toMatchObject({
    "proxy-gid": 0,
    "ports-to-redirect": [80, 443],
    "inbound-ports-to-ignore": ["4191", "4190", "25", "8000-8100"],
    "outbound-ports-to-ignore": ["3306"],
    ipv6: true,
  });
  expect(rest).toMatchObject({
    log_level: "debug",
    "run-dir": "/run/k3s/linkerd-cni",
    "own-pods": { namespace: "mesh" },
  });
});

test("directories with any characters are mounted, and only once if they are the same", () => {
  const apart = containers({ destCNIBinDir: '/opt/my "bin"', destCNINetDir: "/etc/größe" })[0];
  expect(apart?.volumeMounts?.map((mount) => mount.mountPath)).toEqual([
    '/host/opt/my "bin"',
    "/host/etc/größe",
    "/host/run/linkerd-cni",
    "/host/var/lib/cni",
    "/tmp",
  ]);
  const one = containers({ destCNIBinDir: "/cni", destCNINetDir: "/cni", pluginLog: false })[0];
  expect(one?.volumeMounts?.map((mount) => mount.mountPath)).toEqual([
    ...["/host/cni", "/host/run/linkerd-cni", "/host/var/lib/cni", "/tmp"],
  ]);
  expect(one?.env).toContainEqual({ name: "SHOW_PLUGIN_LOG", value: "false" });
});

test("no privilege unless asked for", () => {
  expect(containers()[0]?.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    capabilities: { drop: ["ALL"], add: ["DAC_OVERRIDE"] },
    privileged: false,
    readOnlyRootFilesystem: true,
    runAsUser: 0,
    seccompProfile: { type: "RuntimeDefault" },
  });
  const privileged = containers({ privileged: true })[0]?.securityContext;
  expect(privileged).toMatchObject({ privileged: true, allowPrivilegeEscalation: true });
});

test("only the security context of the repair controller can be disabled", () => {
  const repair = (enableSecurityContext: boolean) =>
    containers({ repairController: { enabled: true, enableSecurityContext } })[1];
  const { securityContext, ...rest } = repair(true)!;
  expect(securityContext).toBeDefined();
  expect(repair(false)).toEqual(rest);
  expect(rest.command?.at(-1)).toBe("repair");
  expect(containers()).toHaveLength(1);
});

test("the repair controller's permissions come with it", () => {
  const rules = (props: LinkerdCniProps) => JSON.stringify(found("ClusterRole", props));
  expect(rules({})).not.toContain("delete");
  const granted = rules({ repairController: { enabled: true }, rbac: { minimal: true } });
  for (const right of ['"delete"', "mutatingwebhookconfigurations", "endpointslices"]) expect(granted).toContain(right);
});

test("empty requests and limits are left out", () => {
  expect(containers()[0]).not.toHaveProperty("resources");
  const resources = { cpu: { request: "10m" }, "ephemeral-storage": { limit: "100Mi" } };
  expect(containers({ resources })[0]?.resources).toEqual({
    limits: { "ephemeral-storage": "100Mi" },
    requests: { cpu: "10m" },
  });
});

test("a changed configuration replaces pods, and a changed number of revisions does not", () => {
  const checksum = (props: LinkerdCniProps) => podOf(props).metadata.annotations["checksum/config"];
  expect(checksum({ proxyUID: 2103 })).not.toBe(checksum({}));
  expect(checksum({ revisionHistoryLimit: 3 })).toBe(checksum({}));
});

describe("the update strategy", () => {
  const strategy = (props: LinkerdCniProps) =>
    (found("DaemonSet", props) as unknown as { spec: { updateStrategy: object } }).spec.updateStrategy;

  /** Given values, and the resulting rolling update: the API server accepts one of the two, not both. */
  test.each([
    [{}, 1, 0],
    [{ maxUnavailable: 1 }, 0, 1],
    [{ maxUnavailable: "25%" }, 0, "25%"],
    [{ maxUnavailable: 0 }, 1, 0],
    [{ maxUnavailable: "0%" }, 1, "0%"],
    [{ maxSurge: 3 }, 3, 0],
    [{ maxSurge: "10%" }, "10%", 0],
    [{ maxSurge: 0 }, 0, 1],
    [{ maxSurge: "1", maxUnavailable: "0" }, 1, 0],
  ])("%j: maxSurge %s, maxUnavailable %s", (rollingUpdate, maxSurge, maxUnavailable) => {
    expect(strategy({ updateStrategy: { rollingUpdate } })).toEqual({
      type: "RollingUpdate",
      rollingUpdate: { maxSurge, maxUnavailable },
    });
  });

  test("on the host network, where two pods would need the same ports, the old pod ends first", () => {
    expect(strategy({ hostNetwork: true })).toMatchObject({ rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } });
  });

  test("on the host network a new pod that starts first is refused, unless the pods have no ports", () => {
    const given = { hostNetwork: true, updateStrategy: { rollingUpdate: { maxSurge: 1 } } };
    expect(() => strategy(given)).toThrow("leave maxSurge and maxUnavailable out, or set maxSurge to 0");
    expect(() => strategy({ ...given, healthPort: 0, repairController: { enabled: true } })).toThrow("same ports");
    expect(strategy({ ...given, healthPort: 0 })).toMatchObject({ rollingUpdate: { maxSurge: 1 } });
    expect(strategy({ ...given, updateStrategy: { type: "OnDelete" } })).toEqual({ type: "OnDelete" });
  });

  test("OnDelete has no numbers", () => {
    expect(strategy({ updateStrategy: { type: "OnDelete" } })).toEqual({ type: "OnDelete" });
  });
});

test("linkerd's names of log levels reach the plugin as they are, and the installer as it knows them", () => {
  const level = (logLevel: LinkerdCniProps["logLevel"]) => [
    stanza({ logLevel }).log_level,
    containers({ logLevel })[0]?.env.find(({ name }) => name === "LOG_LEVEL")?.value,
  ];
  expect([level("debug"), level("warning"), level("fatal"), level("panic")]).toEqual([
    ["debug", "debug"],
    ["warning", "warn"],
    ["fatal", "error"],
    ["panic", "error"],
  ]);
});

test("minimal permissions: the plugin's, which may use the installer's token, single nodes, and the installer's DaemonSet", () => {
  expect((found("ClusterRole", { rbac: { minimal: true } }) as unknown as { rules: unknown }).rules).toEqual([
    { apiGroups: [""], resources: ["pods", "namespaces"], verbs: ["get"] },
    { apiGroups: [""], resources: ["services"], resourceNames: ["kubernetes"], verbs: ["get"] },
    { apiGroups: [""], resources: ["nodes"], verbs: ["get"] },
    { apiGroups: ["apps"], resources: ["daemonsets"], resourceNames: ["linkerd-cni"], verbs: ["get"] },
  ]);
});

test("networkPolicy.enabled: a policy with the open ports", () => {
  const from = [{ namespaceSelector: { matchLabels: { team: "monitoring" } } }];
  const props = { networkPolicy: { enabled: true, from }, healthPort: 9000, repairController: { enabled: true } };
  expect(found("NetworkPolicy", props)).toMatchObject({
    spec: {
      ingress: [
        {
          from,
          ports: [
            { port: 9000, protocol: "TCP" },
            { port: 9990, protocol: "TCP" },
          ],
        },
      ],
    },
  });
  expect(synthesized().map(({ kind }) => kind)).not.toContain("NetworkPolicy");
});

class WithFirewall extends LinkerdCni {
  readonly mark: number;
  constructor(scope: Chart, id: string) {
    super(scope, id, { proxyUID: 3000 });
    this.mark = 7;
  }
  protected override stanza() {
    return { ...super.stanza(), "strict-status": true };
  }
}

test("a subclass changes the stanza and adds to it, and the pods follow", () => {
  const chart = new Chart(new App(), "chart");
  const cni = new WithFirewall(chart, "cni");
  const before = JSON.stringify(chart.toJson());
  cni.addStanza({ linkerd: { simulate: true }, firewall: { mark: cni.mark } });
  const manifests = chart.toJson() as Manifest[];
  const config = manifests.find(({ kind }) => kind === "ConfigMap") as unknown as { data: Record<string, string> };
  expect(JSON.parse(config.data["cni_network_config"]!)).toMatchObject({
    linkerd: { simulate: true, "proxy-uid": 3000 },
    firewall: { mark: 7 },
    "strict-status": true,
  });
  const checksum = (text: string) => /"checksum\/config":"(\w+)"/.exec(text)?.[1];
  expect(checksum(JSON.stringify(manifests))).toBeDefined();
  expect(checksum(JSON.stringify(manifests))).not.toBe(checksum(before));
});

class WithFields extends LinkerdCni {
  private readonly audit = { log: "/var/log/audit" };
  private readonly dnsPolicy = "Default";
  private readonly resource = "leases";
  protected override stanza() {
    return { ...super.stanza(), "example.com/audit": this.audit };
  }
  protected override podSpec() {
    return { ...super.podSpec(), dnsPolicy: this.dnsPolicy };
  }
  protected override clusterRoleRules() {
    return [{ apiGroups: ["coordination.k8s.io"], resources: [this.resource], verbs: ["get"] }];
  }
}

test("overrides of a subclass may use its fields", () => {
  const chart = new Chart(new App(), "chart");
  new WithFields(chart, "cni");
  const text = JSON.stringify(chart.toJson());
  expect(text).toContain("/var/log/audit");
  expect(text).toContain('"dnsPolicy":"Default"');
  expect(text).toContain('"resources":["leases"]');
});

test("every resource can be patched", () => {
  const chart = new Chart(new App(), "chart");
  const cni = new LinkerdCni(chart, "cni");
  cni.daemonSet.addJsonPatch(JsonPatch.add("/spec/template/spec/dnsPolicy", "Default"));
  cni.serviceAccount.metadata.addAnnotation("team", "mesh");
  const manifests = chart.toJson() as Manifest[];
  expect(manifests.find(({ kind }) => kind === "DaemonSet")).toMatchObject({
    spec: { template: { spec: { dnsPolicy: "Default" } } },
  });
  expect(manifests.find(({ kind }) => kind === "ServiceAccount")).toMatchObject({
    metadata: { annotations: { team: "mesh" } },
  });
});

test("a chart's namespace is also the plugin's", () => {
  const chart = new Chart(new App(), "chart", { namespace: "mesh" });
  new LinkerdNamespace(chart, "namespace");
  new LinkerdCni(chart, "cni");
  const manifests = chart.toJson() as { kind: string; metadata: { name: string; namespace?: string } }[];
  expect(manifests.find(({ kind }) => kind === "Namespace")?.metadata.name).toBe("mesh");
  expect(manifests.find(({ kind }) => kind === "DaemonSet")?.metadata.namespace).toBe("mesh");
});

test("podMonitor.enabled: a PodMonitor with the open ports", () => {
  const props = {
    podMonitor: { enabled: true, labels: { release: "prometheus" } },
    repairController: { enabled: true },
  };
  expect(found("PodMonitor", props)).toMatchObject({
    metadata: { labels: { release: "prometheus", "linkerd.io/cni-resource": "true" } },
    spec: { podMetricsEndpoints: [{ port: "health" }, { port: "repair-admin" }] },
  });
});

test("podMonitor.scrapeInterval and scrapeTimeout: each endpoint has them, and by default Prometheus decides", () => {
  const endpointsOf = (props: LinkerdCniProps["podMonitor"]) =>
    synthesized({
      podMonitor: { enabled: true, ...props },
      repairController: { enabled: true },
      nri: { enabled: true },
    })
      .filter(({ kind }) => kind === "PodMonitor")
      .flatMap(({ spec }) => (spec as unknown as { podMetricsEndpoints: object[] }).podMetricsEndpoints);
  const usual = endpointsOf({});
  expect(usual).toHaveLength(3);
  for (const endpoint of usual) expect(Object.keys(endpoint).sort()).toEqual(["path", "port", "relabelings"]);
  expect(endpointsOf({ scrapeInterval: "1m30s", scrapeTimeout: "10s" })).toEqual(
    usual.map((endpoint) => ({ ...endpoint, interval: "1m30s", scrapeTimeout: "10s" })),
  );
});
