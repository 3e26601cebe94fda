import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ociArchive } from "../../build/image/oci";
import { LINKERDS_STANZA } from "../support/linkerd-stanza";
import { importImage } from "./images";
import type { Machine } from "./machine";
import { paths } from "./paths";

const IMAGE = "linkerd-cni.test/linkerd:1";

/** Executables of linkerd's: its installer and its plugin. */
interface LinkerdPrograms {
  readonly installer: string;
  readonly plugin: string;
}

const labels = { "linkerd.io/cni-resource": "true" };
const metadata = (name: string) => ({ name, labels });

const configured = (name: string, key: string) => ({
  name,
  valueFrom: { configMapKeyRef: { name: "linkerd-cni-config", key } },
});

/** The pods. The hook before their end is left out: it sends the signal that follows it, and needs a shell. */
const POD = {
  serviceAccountName: "linkerd-cni",
  nodeSelector: { "kubernetes.io/os": "linux" },
  tolerations: [{ operator: "Exists" }],
  securityContext: { seccompProfile: { type: "RuntimeDefault" } },
  containers: [
    {
      name: "install-cni",
      image: IMAGE,
      imagePullPolicy: "IfNotPresent",
      env: [
        configured("DEST_CNI_NET_DIR", "dest_cni_net_dir"),
        configured("DEST_CNI_BIN_DIR", "dest_cni_bin_dir"),
        configured("CNI_NETWORK_CONFIG", "cni_network_config"),
      ],
      volumeMounts: [
        { name: "cni-bin-dir", mountPath: "/host/opt/cni/bin" },
        { name: "cni-net-dir", mountPath: "/host/etc/cni/net.d" },
        { name: "linkerd-tmp-dir", mountPath: "/tmp" },
      ],
      securityContext: { readOnlyRootFilesystem: true, privileged: false },
    },
  ],
  volumes: [
    { name: "cni-bin-dir", hostPath: { path: "/opt/cni/bin" } },
    { name: "cni-net-dir", hostPath: { path: "/etc/cni/net.d" } },
    { name: "linkerd-tmp-dir", emptyDir: {} },
  ],
};

const RBAC = "rbac.authorization.k8s.io";
const SELECTOR = { "k8s-app": "linkerd-cni" };

const objects = [
  { apiVersion: "v1", kind: "ServiceAccount", metadata: metadata("linkerd-cni") },
  {
    apiVersion: `${RBAC}/v1`,
    kind: "ClusterRole",
    metadata: metadata("linkerd-cni"),
    rules: [
      { apiGroups: [""], resources: ["pods", "nodes", "namespaces", "services"], verbs: ["list", "get", "watch"] },
    ],
  },
  {
    apiVersion: `${RBAC}/v1`,
    kind: "ClusterRoleBinding",
    metadata: metadata("linkerd-cni"),
    roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: "linkerd-cni" },
    subjects: [{ kind: "ServiceAccount", name: "linkerd-cni", namespace: "linkerd-cni" }],
  },
  {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: metadata("linkerd-cni-config"),
    data: {
      dest_cni_net_dir: "/etc/cni/net.d",
      dest_cni_bin_dir: "/opt/cni/bin",
      cni_network_config: JSON.stringify(LINKERDS_STANZA, undefined, 2),
    },
  },
  {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: "linkerd-cni", labels: { ...labels, ...SELECTOR } },
    spec: {
      selector: { matchLabels: SELECTOR },
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } },
      template: {
        metadata: { labels: { ...labels, ...SELECTOR }, annotations: { "linkerd.io/inject": "disabled" } },
        spec: POD,
      },
    },
  },
];

/**
 * Makes a chart that installs what linkerd's does by default, and gives the node its image.
 * @returns the chart's directory
 */
export async function linkerdChart(machine: Machine, programs: LinkerdPrograms): Promise<string> {
  const [chart, archive] = ["linkerd2-cni", "linkerd.tar"].map((name) => join(paths.images, name)) as [string, string];
  await mkdir(join(chart, "templates"), { recursive: true });
  await writeFile(
    join(chart, "Chart.yaml"),
    JSON.stringify({ apiVersion: "v2", name: "linkerd2-cni", version: "1.0.0" }),
  );
  const documents = objects.map((object) => JSON.stringify(object));
  await writeFile(join(chart, "templates", "cni-plugin.yaml"), documents.join("\n---\n"));
  const files = [
    { name: "cni-install", mode: 0o755, content: await readFile(programs.installer) },
    { name: "opt/cni/bin/linkerd-cni", mode: 0o755, content: await readFile(programs.plugin) },
  ];
  const architecture = process.arch === "arm64" ? "arm64" : "amd64";
  const spec = { reference: IMAGE, entrypoint: ["/cni-install"], env: [], labels: {} };
  await writeFile(archive, await ociArchive(spec, [{ architecture, files }]));
  await importImage(machine, archive);
  return chart;
}
