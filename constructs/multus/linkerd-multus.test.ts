import { App, Chart, JsonPatch } from "cdk8s";
import { LinkerdCni } from "../linkerd-cni";
import { LinkerdMultus, type LinkerdMultusProps } from "./linkerd-multus";
import { LinkerdMultusNamespace } from "./namespace";

interface Manifest {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [key: string]: unknown;
}

function synthesized(props: LinkerdMultusProps = {}): readonly Manifest[] {
  const chart = new Chart(new App(), "chart");
  new LinkerdMultus(chart, "multus", props);
  return chart.toJson() as Manifest[];
}

const listed = (manifests: readonly Manifest[]) =>
  manifests.map(({ kind, metadata }) => `${kind}/${metadata.namespace ?? ""}/${metadata.name}`);

function found(kind: string, props: LinkerdMultusProps = {}): Manifest {
  const manifest = synthesized(props).find((item) => item.kind === kind);
  if (manifest === undefined) throw new Error(`no ${kind}`);
  return manifest;
}

interface Pod {
  readonly affinity: object;
  readonly containers: readonly { readonly args: readonly string[]; readonly securityContext: object }[];
  readonly topologySpreadConstraints: readonly object[];
  readonly volumes?: readonly object[];
  readonly nodeSelector: object;
}

test("the operator's ports are three", () => {
  for (const service of [{ webhookPort: 8080 }, { healthPort: 8080 }, { webhookPort: 5000, healthPort: 5000 }]) {
    expect(() => synthesized({ service })).toThrow("service: webhookPort, metricsPort and healthPort must differ");
  }
});

test("its webhook also excludes its own namespace by label, wherever kustomize moves it", () => {
  const { webhooks } = found("MutatingWebhookConfiguration") as unknown as {
    webhooks: { namespaceSelector: { matchExpressions: object[] } }[];
  };
  const own = { key: "app.kubernetes.io/name", operator: "NotIn", values: ["linkerd-multus"] };
  for (const { namespaceSelector } of webhooks) expect(namespaceSelector.matchExpressions).toContainEqual(own);
  const chart = new Chart(new App(), "chart");
  new LinkerdMultusNamespace(chart, "namespace");
  expect(chart.toJson()[0].metadata.labels).toMatchObject({ "app.kubernetes.io/name": "linkerd-multus" });
});

const podOf = (props: LinkerdMultusProps = {}): Pod =>
  (found("Deployment", props) as unknown as { spec: { template: { spec: Pod } } }).spec.template.spec;
const args = (props: LinkerdMultusProps = {}) => podOf(props).containers[0]?.args ?? [];

interface Webhook {
  readonly rules: readonly { readonly operations: readonly string[] }[];
  readonly namespaceSelector: object;
  readonly objectSelector?: object;
  readonly failurePolicy: string;
}
const webhooksOf = (props: LinkerdMultusProps = {}): [Webhook, Webhook] =>
  (found("MutatingWebhookConfiguration", props) as unknown as { webhooks: [Webhook, Webhook] }).webhooks;
const webhookOf = (props: LinkerdMultusProps = {}): Webhook => webhooksOf(props)[0];

test("every resource has the label that pruning selects and the user's, without the plugin's pruning label", () => {
  for (const { metadata } of synthesized({ commonLabels: { team: "mesh", "app.kubernetes.io/name": "other" } })) {
    expect(metadata.labels).toEqual({ team: "mesh", "app.kubernetes.io/name": "linkerd-multus" });
  }
});

test("every resource has the user's annotations besides its own, pods do not", () => {
  const enabled = { enabled: true };
  const everything: LinkerdMultusProps = {
    networkPolicy: enabled,
    podMonitor: enabled,
    prometheusRule: enabled,
    webhook: { certificates: "cert-manager" },
  };
  const commonAnnotations = { "argocd.argoproj.io/sync-wave": "-1", "cert-manager.io/inject-ca-from": "me" };
  const annotationsOf = (props: LinkerdMultusProps) =>
    synthesized({ ...everything, ...props }).map(({ metadata }) => metadata.annotations);
  expect(annotationsOf({ commonAnnotations })).toEqual(
    annotationsOf({}).map((own) => ({ ...commonAnnotations, ...own })),
  );
  expect(found("Deployment", { commonAnnotations })["spec"]).toEqual(found("Deployment")["spec"]);
});

test("podMonitor.scrapeInterval and scrapeTimeout: by default Prometheus decides", () => {
  const endpoints = (props: LinkerdMultusProps["podMonitor"]) =>
    (found("PodMonitor", { podMonitor: { enabled: true, ...props } })["spec"] as { podMetricsEndpoints: object[] })
      .podMetricsEndpoints;
  expect(endpoints({})).toEqual([{ port: "metrics", path: "/metrics" }]);
  expect(endpoints({ scrapeInterval: "30s", scrapeTimeout: "500ms" })).toEqual([
    { port: "metrics", path: "/metrics", interval: "30s", scrapeTimeout: "500ms" },
  ]);
});

test("the charts of operator and plugin do not share a resource", () => {
  const chart = new Chart(new App(), "chart", { namespace: "linkerd-cni" });
  new LinkerdCni(chart, "cni", { networkPolicy: { enabled: true }, podMonitor: { enabled: true } });
  new LinkerdMultus(chart, "multus", { networkPolicy: { enabled: true }, podMonitor: { enabled: true } });
  const names = listed(chart.toJson() as Manifest[]);
  expect(new Set(names).size).toBe(names.length);
});

test("the operator's arguments follow the values", () => {
  const props: LinkerdMultusProps = {
    controller: { cniNamespace: "cni", linkerdControlPlaneNamespace: "mesh", linkerdProxyUIDOffset: 7 },
    service: { webhookPort: 1443 },
    logFormat: "json",
  };
  expect(args(props)).toEqual(
    expect.arrayContaining([
      "--cni-namespace=cni",
      "--linkerd-namespace=mesh",
      "--linkerd-proxy-uid-offset=7",
      "--webhook-port=1443",
      "--log-format=json",
      "--leader-elect=true",
    ]),
  );
  expect(listed(synthesized(props))).toContain("Role/cni/linkerd-multus-config");
});

test("the webhook never sees pods that must start before the operator", () => {
  const system = ["kube-system", "kube-public", "kube-node-lease"];
  const first = { key: "kubernetes.io/metadata.name", operator: "NotIn", values: [...system, "mesh-ops", "cni"] };
  const labelled = { ...first, key: "app.kubernetes.io/name", values: ["linkerd-multus"] };
  const props = { namespace: "mesh-ops", controller: { cniNamespace: "cni" } };
  for (const { namespaceSelector } of webhooksOf(props)) {
    expect(namespaceSelector).toEqual({ matchExpressions: [first, labelled] });
  }
  const chosen = { matchLabels: { mesh: "yes" }, matchExpressions: [] };
  expect(webhookOf({ ...props, webhook: { namespaceSelector: chosen } }).namespaceSelector).toEqual({
    matchLabels: { mesh: "yes" },
    matchExpressions: [first, labelled],
  });
});

test("during an outage existing pods can be changed, and new ones are refused by default", () => {
  const policies = (props?: LinkerdMultusProps) =>
    webhooksOf(props).map(({ rules, failurePolicy }) => `${rules[0]?.operations}: ${failurePolicy}`);
  expect(policies()).toEqual(["CREATE: Fail", "UPDATE: Ignore"]);
  expect(policies({ webhook: { failurePolicy: "Ignore" } })).toEqual(["CREATE: Ignore", "UPDATE: Ignore"]);
});

test("it may write one Secret and cannot create Secrets", () => {
  const roles = synthesized().filter(({ kind }) => /Role$/.test(kind)) as unknown as {
    rules: { resources: string[]; resourceNames?: string[]; verbs: string[] }[];
  }[];
  const rules = roles.flatMap((role) => role.rules).filter(({ resources }) => resources.includes("secrets"));
  expect(rules).toMatchObject([
    { resourceNames: ["linkerd-multus-webhook-tls"], verbs: ["get", "list", "watch", "patch"] },
  ]);
});

test("the chart does not contain a certificate: GitOps would rotate it or remove the operator's", () => {
  expect(webhookOf()).not.toHaveProperty("clientConfig.caBundle");
  const secret = synthesized().find(({ kind }) => kind === "Secret");
  expect(secret).not.toHaveProperty("data");
  expect(secret).not.toHaveProperty("stringData");
});

test("the webhook sees the selected pods, by default all", () => {
  expect(webhookOf()).not.toHaveProperty("objectSelector");
  const matchExpressions = [{ key: "job-name", operator: "DoesNotExist" as const }];
  expect(webhookOf({ webhook: { objectSelector: { matchExpressions } } }).objectSelector).toEqual({ matchExpressions });
});

test("cert-manager can make the certificate, with an issuer of the chart or an existing one", () => {
  const webhook = { certificates: "cert-manager" as const };
  expect(args({ webhook })).toEqual(
    expect.arrayContaining(["--webhook-certificates=mounted", "--webhook-certificate-dir=/tls"]),
  );
  const certificates = synthesized({ webhook, namespace: "ops" }).filter(({ kind }) => kind === "Certificate");
  const [authority, certificate] = certificates as unknown as readonly {
    metadata: { name: string };
    spec: { secretName: string; issuerRef: { name: string }; dnsNames: readonly string[] };
  }[];
  if (authority === undefined || certificate === undefined) throw new Error("not two certificates");
  expect(certificate.spec).toMatchObject({
    dnsNames: ["linkerd-multus-webhook.ops.svc", "linkerd-multus-webhook.ops.svc.cluster.local"],
  });
  // The API server already trusts the signer of the renewed certificate, and the authority keeps its key.
  const issuers = synthesized({ webhook }).filter(({ kind }) => kind === "Issuer");
  const issuer = (name: string) => issuers.find(({ metadata }) => metadata.name === name)?.["spec"];
  expect(issuer(certificate.spec.issuerRef.name)).toEqual({ ca: { secretName: authority.spec.secretName } });
  expect(authority.spec).toMatchObject({ isCA: true, privateKey: { rotationPolicy: "Never" } });
  expect(issuer(authority.spec.issuerRef.name)).toEqual({ selfSigned: {} });
  expect(podOf({ webhook }).volumes).toEqual([
    { name: "certificate", secret: { secretName: certificate.spec.secretName } },
  ]);
  expect(found("MutatingWebhookConfiguration", { webhook, namespace: "ops" }).metadata.annotations).toEqual({
    "cert-manager.io/inject-ca-from": `ops/${certificate.metadata.name}`,
  });
  const issuerRef = { name: "ca", kind: "ClusterIssuer" };
  const given = synthesized({ webhook: { ...webhook, issuerRef } });
  expect(given.map(({ kind }) => kind)).not.toContain("Issuer");
  expect(given.filter(({ kind }) => kind === "Certificate")).toMatchObject([{ spec: { issuerRef } }]);
});

interface Rule {
  readonly resources: readonly string[];
}
const grantedBy = (props: LinkerdMultusProps) =>
  synthesized(props)
    .filter(({ kind }) => kind === "Role" || kind === "ClusterRole")
    .flatMap(({ rules = [] }) => (rules as readonly Rule[]).flatMap(({ resources }) => resources));

test("the operator lacks permissions for disabled features", () => {
  const certificates = ["secrets", "mutatingwebhookconfigurations"];
  expect(grantedBy({})).toEqual(expect.arrayContaining([...certificates, "leases"]));
  const issued = grantedBy({ webhook: { certificates: "cert-manager" } });
  expect(issued.filter((resource) => certificates.includes(resource))).toEqual([]);
  expect(issued).toContain("leases");
  const controller = { leaderElection: false };
  expect(grantedBy({ controller })).not.toContain("leases");
  const neither = grantedBy({ controller, webhook: { certificates: "cert-manager" } });
  expect([...new Set(neither)].sort()).toEqual([
    "configmaps",
    "events",
    "namespaces",
    "network-attachment-definitions",
  ]);
});

test("replicas prefer different nodes by default", () => {
  expect(JSON.stringify(podOf().affinity)).toContain("podAntiAffinity");
  expect(podOf().topologySpreadConstraints).toMatchObject([{ topologyKey: "topology.kubernetes.io/zone" }]);
  const affinity = { nodeAffinity: {} };
  const topologySpreadConstraints = [{ topologyKey: "rack", maxSkew: 2 }];
  expect(podOf({ affinity, topologySpreadConstraints })).toMatchObject({ affinity, topologySpreadConstraints });
  expect(podOf({ affinity }).affinity).toEqual(affinity);
});

test("on the host network an update stops an old pod first, because a second pod cannot use the same ports", () => {
  const spec = (props: LinkerdMultusProps) => found("Deployment", props)["spec"];
  expect(spec({ hostNetwork: true })).toMatchObject({
    strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
  });
  expect(spec({})).not.toHaveProperty("strategy");
});

test("the pod is not privileged, and the cluster may choose the user id", () => {
  expect(podOf().containers[0]?.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    capabilities: { drop: ["ALL"] },
    readOnlyRootFilesystem: true,
    runAsNonRoot: true,
    runAsUser: 65532,
    seccompProfile: { type: "RuntimeDefault" },
  });
  expect(podOf({ runAsUser: -1 }).containers[0]?.securityContext).not.toHaveProperty("runAsUser");
});

test("the node selector always contains Linux", () => {
  const nodeSelector = { pool: "infra", "kubernetes.io/os": "windows" };
  expect(podOf({ nodeSelector }).nodeSelector).toEqual({ pool: "infra", "kubernetes.io/os": "linux" });
});

test("a wrong value is named with the allowed ones", () => {
  const wrong = { controller: { cniNamespace: "Linkerd_CNI" }, webhook: { timeoutSeconds: 31 } };
  expect(() => synthesized(wrong)).toThrow(
    'controller.cniNamespace: "Linkerd_CNI" is not the name of a namespace\n' +
      "  [chart/multus] webhook.timeoutSeconds: 31 is more than 30",
  );
});

class OnePod extends LinkerdMultus {
  protected override createPodDisruptionBudget() {
    // One pod does not need it.
    return undefined;
  }
}

test("a subclass leaves out a resource, and every resource can be patched", () => {
  const chart = new Chart(new App(), "chart", { namespace: "ops" });
  new LinkerdMultusNamespace(chart, "namespace");
  const multus = new OnePod(chart, "multus", { replicaCount: 1 });
  multus.deployment.addJsonPatch(JsonPatch.add("/spec/minReadySeconds", 5));
  const manifests = chart.toJson() as Manifest[];
  expect(manifests.map(({ kind }) => kind)).not.toContain("PodDisruptionBudget");
  expect(manifests.find(({ kind }) => kind === "Deployment")).toMatchObject({ spec: { minReadySeconds: 5 } });
  expect(manifests.find(({ kind }) => kind === "Namespace")).toMatchObject({
    metadata: { name: "ops", labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
  });
});

test("the namespace can allow pods on the host network", () => {
  const chart = new Chart(new App(), "chart");
  new LinkerdMultusNamespace(chart, "namespace", { name: "ops", podSecurity: "privileged" });
  expect(chart.toJson()).toMatchObject([
    { metadata: { name: "ops", labels: { "pod-security.kubernetes.io/enforce": "privileged" } } },
  ]);
});
