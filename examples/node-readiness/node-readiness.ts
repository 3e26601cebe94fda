/**
 * A chart for the node readiness controller of Kubernetes' SIG Node, which taints nodes until their conditions hold, and
 * one for its reporter, which sets such a condition: https://github.com/kubernetes-sigs/node-readiness-controller
 */

import { ApiObject, type App, Chart } from "cdk8s";
import {
  chartFiles,
  concat,
  each,
  eq,
  HelmChart,
  HelmObject,
  type Input,
  inputsOf,
  items,
  not,
  type PropsOf,
  present,
  type Refs,
  release,
  spread,
  value,
  valuesOf,
  when,
} from "cdk8s-helm-chart";
import { k8s } from "cdk8s-plus-27";
import { Construct } from "constructs";
import { RULE_DEFINITION } from "./rule-definition";

const IMAGES = "registry.k8s.io/node-readiness-controller";
const VERSION = "0.5.0";

const imageValues = (name: string) => ({
  repository: value.string({ description: "Name of the image", default: `${IMAGES}/${name}` }),
  tag: value.numericString({ description: "Tag of the image", default: `v${VERSION}` }),
});

const image = ({ repository, tag }: { repository: Input<string>; tag: Input<string> }) => concat(repository, ":", tag);

export const controllerValues = valuesOf({
  image: imageValues("node-readiness-controller"),
  replicas: value.integer({ description: "How many pods; one of them is the leader", default: 1, min: 1, max: 9 }),
  metricsPort: value.integer({ description: "Port of the metrics; 0 for none", default: 0, min: 0, max: 65535 }),
  extraArgs: value.texts({
    description: "More arguments of the controller",
    default: [],
    examples: [["--kube-api-qps=50"]],
  }),
  podAnnotations: value.map({ description: "Annotations of the pods", default: {} }),
  owner: value.string({
    description: "Who runs this: an annotation of the pods",
    default: "",
    examples: ["platform@example.com"],
  }),
  resources: value.object({
    description: "Resources of the container",
    default: { requests: { cpu: "10m", memory: "64Mi" }, limits: { memory: "128Mi" } },
  }),
  nodeSelector: value.map({ description: "Nodes to run on", default: {} }),
  tolerations: value.list({ description: "Tolerations of the pods", default: [{ operator: "Exists" }] }),
});

const RULES = "readiness.node.x-k8s.io";

/** The controller's permissions. */
const PERMISSIONS: readonly k8s.PolicyRule[] = [
  { apiGroups: ["", "events.k8s.io"], resources: ["events"], verbs: ["create", "patch"] },
  { apiGroups: [""], resources: ["nodes"], verbs: ["get", "list", "patch", "update", "watch"] },
  { apiGroups: [RULES], resources: ["nodereadinessrules"], verbs: ["get", "list", "patch", "update", "watch"] },
  { apiGroups: [RULES], resources: ["nodereadinessrules/status"], verbs: ["get", "patch", "update"] },
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create", "get", "update"] },
];

/** A service account with permissions in the whole cluster. */
function account(scope: Construct, name: string, namespace: Input<string>, rules: readonly k8s.PolicyRule[]): void {
  const subjects = [{ kind: "ServiceAccount", name, namespace }];
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name };
  new HelmObject<k8s.KubeServiceAccountProps>(scope, "account", k8s.KubeServiceAccount.GVK, {
    metadata: { name, namespace },
  });
  new HelmObject<k8s.KubeClusterRoleProps>(scope, "role", k8s.KubeClusterRole.GVK, { metadata: { name }, rules });
  new HelmObject<k8s.KubeClusterRoleBindingProps>(scope, "binding", k8s.KubeClusterRoleBinding.GVK, {
    metadata: { name },
    roleRef,
    subjects,
  });
}

const namespaceOf = (scope: Construct): Input<string> =>
  HelmChart.find(scope) === undefined ? (Chart.of(scope).namespace ?? "default") : release.namespace;

/** The controller, in a Helm chart or in a plain one. */
export class NodeReadinessController extends Construct {
  constructor(scope: Construct, id: string, props: PropsOf<typeof controllerValues> = {}) {
    super(scope, id);
    const { values, problems } = inputsOf(this, controllerValues, { given: props });
    this.node.addValidation({ validate: () => [...problems] });
    const name = "node-readiness-controller";
    const namespace = namespaceOf(this);
    new ApiObject(this, "definition", RULE_DEFINITION);
    account(this, name, namespace, PERMISSIONS);
    const labels = { "app.kubernetes.io/name": name };
    new HelmObject<k8s.KubeDeploymentProps>(this, "deployment", k8s.KubeDeployment.GVK, {
      metadata: {
        name,
        namespace,
        labels,
      },
      spec: {
        replicas: values.replicas,
        selector: { matchLabels: labels },
        template: {
          metadata: {
            labels,
            annotations: {
              ...spread(values.podAnnotations),
              "kubectl.kubernetes.io/default-container": "manager",
              "example.com/owner": present(values.owner),
            },
          },
          spec: {
            serviceAccountName: name,
            priorityClassName: "system-cluster-critical",
            nodeSelector: present(values.nodeSelector),
            tolerations: present(values.tolerations),
            containers: [controllerContainer(values)],
          },
        },
      },
    });
  }
}

function controllerContainer(values: Refs<typeof controllerValues>) {
  const serves = not(eq(values.metricsPort, 0));
  return {
    name: "manager",
    image: image(values.image),
    command: ["/manager"],
    args: [
      "--leader-elect",
      "--health-probe-bind-address=:8081",
      when(serves, concat("--metrics-bind-address=:", values.metricsPort), "--metrics-bind-address=0"),
      ...items(each(values.extraArgs, "arg", (argument) => argument)),
    ],
    ports: [
      { name: "health", containerPort: 8081 },
      when(serves, { name: "metrics", containerPort: values.metricsPort }),
    ],
    livenessProbe: { httpGet: { path: "/healthz", port: "health" } },
    readinessProbe: { httpGet: { path: "/readyz", port: "health" } },
    resources: present(values.resources),
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      capabilities: { drop: ["ALL"] },
    },
  };
}

export const reporterValues = valuesOf({
  image: imageValues("node-readiness-reporter"),
  condition: value.string({ description: "Type of the node's condition", default: "example.com/Ready" }),
  endpoint: value.string({
    description: "URL on the node that answers 200 when the condition holds",
    default: "http://localhost:9099/readiness",
    pattern: /^https?:/,
    wrong: "is not a URL",
  }),
});

/** The reporter, on every node. */
export class NodeReadinessReporter extends Construct {
  constructor(scope: Construct, id: string, props: PropsOf<typeof reporterValues> = {}) {
    super(scope, id);
    const { values, problems } = inputsOf(this, reporterValues, { given: props });
    this.node.addValidation({ validate: () => [...problems] });
    const name = "node-readiness-reporter";
    const namespace = namespaceOf(this);
    account(this, name, namespace, [
      { apiGroups: [""], resources: ["nodes"], verbs: ["get"] },
      { apiGroups: [""], resources: ["nodes/status"], verbs: ["update"] },
    ]);
    const labels = { "app.kubernetes.io/name": name };
    const env = [
      { name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
      { name: "CONDITION_TYPE", value: values.condition },
      { name: "CHECK_ENDPOINT", value: values.endpoint },
    ];
    new HelmObject<k8s.KubeDaemonSetProps>(this, "daemon-set", k8s.KubeDaemonSet.GVK, {
      metadata: { name, namespace, labels },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: name,
            hostNetwork: true,
            tolerations: [{ operator: "Exists" }],
            containers: [{ name: "reporter", image: image(values.image), env }],
          },
        },
      },
    });
  }
}

const common = { version: VERSION, appVersion: VERSION, kubeVersion: ">=1.25.0-0" };

/** The files of both charts, by path. */
export function charts(app: App): ReadonlyMap<string, string> {
  const [controller, reporter] = [new HelmChart(app, "controller"), new HelmChart(app, "reporter")];
  new NodeReadinessController(controller, "controller");
  new NodeReadinessReporter(reporter, "reporter");
  const made = [
    chartFiles({
      chart: controller,
      values: controllerValues,
      introduction: "Taints nodes until their conditions hold.",
      metadata: { name: "node-readiness-controller", description: "Readiness of nodes", ...common },
    }),
    chartFiles({
      chart: reporter,
      values: reporterValues,
      introduction: "Sets a condition of its node.",
      metadata: { name: "node-readiness-reporter", description: "A condition of nodes", ...common },
    }),
  ];
  const names = ["node-readiness-controller", "node-readiness-reporter"];
  return new Map(made.flatMap((files, index) => [...files].map(([path, text]) => [`${names[index]}/${path}`, text])));
}
