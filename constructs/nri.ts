import type { ApiObject, GroupVersionKind } from "cdk8s";
import { k8s } from "cdk8s-plus-27";
import { Construct } from "constructs";
import {
  Annotation,
  CNI_NAME,
  ConfigMapKey,
  Container,
  Label,
  LinkerdContainer,
  NodePath,
  NRI_NAME,
  NRI_PLUGIN,
  NRI_PORT,
  NriVariable,
} from "../cni/contract";
import {
  and,
  assert,
  concat,
  type HelmManifest,
  type HelmMetadata,
  HelmObject,
  type Input,
  matches,
  not,
  or,
  type Part,
  present,
  type Refs,
  type Templated,
  when,
} from "../helm/index";
import type { Additions } from "./additions";
import { hasAnnotation, matchConstraints, mutatingPolicy, NOT_STATIC } from "./admission";
import { configured, extraEnvOf, imageOf, probesOf, programCommand, RESTRICTED, resourcesOf } from "./container";
import type { Labels } from "./installation";
import { ingressOnly, tcp } from "./network-policy";
import { logLevelOf, type PodParts, placementOf, seLinuxOptionsOf } from "./pod";
import type { NodeTaint } from "./taint";
import type { Values } from "./values";

/** The labels that select the NRI plugin's pods. */
export const NRI_SELECTOR = { [Label.app]: NRI_NAME };

/** The name of the port with probes and metrics. */
export const NRI_PORT_NAME = "nri-admin";

/**
 * Needed to enter and program a network namespace. Without the prefix CAP_, as in Kubernetes: the API server refuses
 * `CAP_SYS_ADMIN` together with allowPrivilegeEscalation: false.
 */
const NRI_CAPABILITIES = ["NET_ADMIN", "SYS_ADMIN"] as const;

/**
 * The NRI plugin programs only by netlink: the other modes call programs of the host, which its container does not
 * have.
 */
function checkedIndex({ iptablesMode, nri }: Refs<Values>): Input<string> {
  return assert(
    or(not(nri.enabled), matches(iptablesMode, "^(auto|native)$")),
    concat(
      'iptablesMode: "',
      iptablesMode,
      '" needs iptables of the host, which the NRI plugin cannot call: with nri.enabled set iptablesMode to auto or native',
    ),
    nri.index,
  );
}

function container(values: Refs<Values>): Part<k8s.Container> {
  const { nri } = values;
  return {
    name: Container.nri,
    ...imageOf(values),
    command: programCommand("nri"),
    env: [
      configured(NriVariable.stanza, ConfigMapKey.stanza),
      { name: NriVariable.logLevel, value: logLevelOf(values) },
      { name: NriVariable.socketDir, value: nri.socketDir },
      { name: NriVariable.netnsDir, value: nri.netnsDir },
      when(not(values.chained), { name: NriVariable.chained, value: "false" }),
      { name: NriVariable.index, value: checkedIndex(values) },
      ...extraEnvOf(values),
    ],
    ports: [{ name: NRI_PORT_NAME, containerPort: NRI_PORT, protocol: "TCP" }],
    ...probesOf(NRI_PORT),
    resources: resourcesOf(nri.resources),
    securityContext: {
      ...RESTRICTED,
      capabilities: { drop: ["ALL"], add: NRI_CAPABILITIES },
      runAsUser: 0,
      seLinuxOptions: seLinuxOptionsOf(values),
    },
    volumeMounts: [
      // The directory, since a mounted socket stays dead after a restart of the runtime.
      { name: "nri-socket-dir", mountPath: nri.socketDir },
      // The runtime mounts namespaces there as pods start.
      { name: "netns-dir", mountPath: nri.netnsDir, mountPropagation: "HostToContainer", readOnly: true },
      { name: "linkerd-run-dir", mountPath: NodePath.runDir },
    ],
  };
}

/** The pods of the NRI plugin. */
export function nriPodSpec(
  values: Refs<Values>,
  securityContext: Templated<k8s.PodSecurityContext>,
  taint: NodeTaint,
): PodParts {
  const { nri, runDir } = values;
  // The directory does not exist if NRI is disabled in the runtime; the plugin then reports it.
  const type = "DirectoryOrCreate";
  return {
    // The installer's, for its image pull secrets and security context constraint; without a token.
    serviceAccountName: CNI_NAME,
    automountServiceAccountToken: false,
    ...placementOf(values, taint),
    securityContext,
    containers: [container(values)],
    volumes: [
      { name: "nri-socket-dir", hostPath: { path: nri.socketDir, type } },
      { name: "netns-dir", hostPath: { path: nri.netnsDir, type } },
      { name: "linkerd-run-dir", hostPath: { path: runDir, type } },
    ],
  };
}

/**
 * The new pod starts first: two NRI plugins at once do no harm, and pods that start without one would not be checked.
 */
export const nriUpdateStrategy: Templated<k8s.DaemonSetUpdateStrategy> = {
  type: "RollingUpdate",
  rollingUpdate: { maxSurge: 1, maxUnavailable: 0 },
};

/** Allows only connections to probes and metrics. */
const networkPolicySpec = ({ networkPolicy: { from } }: Refs<Values>): Part<k8s.NetworkPolicySpec> =>
  ingressOnly(NRI_SELECTOR, [{ from: present(from), ports: [tcp(NRI_PORT)] }] as Templated<
    k8s.NetworkPolicyIngressRule[]
  >);

/**
 * A policy that makes the runtime's validator refuse containers of meshed pods while the NRI plugin is not connected.
 *
 * The API server runs these policies before webhooks, and again after a webhook, such as linkerd's injector, has
 * changed the pod, but only policies whose conditions held before. The policy therefore tests the injector's changes in
 * the mutation, not in a match condition.
 */
const requirePolicy = {
  // The API server evaluates it without a webhook, so an outage cannot block pods. If errors were ignored, pods could
  // start without a redirect again.
  failurePolicy: "Fail",
  reinvocationPolicy: "IfNeeded",
  matchConstraints: matchConstraints("CREATE", "pods"),
  matchConditions: [
    // Runtimes do not call network plugins for these.
    { name: "not-host-network", expression: "!object.spec.?hostNetwork.orValue(false)" },
    NOT_STATIC,
  ],
  variables: [
    {
      name: "meshed",
      expression:
        `object.metadata.?annotations["${Annotation.proxyVersion}"].orValue("") != "" && ` +
        `!object.spec.?initContainers.orValue([]).exists(container, container.name == "${LinkerdContainer.init}")`,
    },
    // The user's own list does not change: CEL cannot parse JSON.
    { name: "told", expression: hasAnnotation(Annotation.requiredPlugins) },
  ],
  mutations: [
    {
      patchType: "JSONPatch",
      jsonPatch: {
        expression:
          "variables.meshed && !variables.told ? " +
          `[JSONPatch{op: "add", path: "/metadata/annotations/${Annotation.requiredPlugins}", ` +
          `value: ${JSON.stringify(JSON.stringify([NRI_PLUGIN]))}}] : []`,
      },
    },
  ],
} as const;

export interface LinkerdNriProps {
  readonly values: Refs<Values>;
  /** The metadata of a namespaced resource, with additional labels and annotations. */
  readonly metadata: (own?: Labels, annotations?: Labels) => HelmMetadata;
  /** Of cluster-scoped resources. */
  readonly clusterMetadata: HelmMetadata;
  /** Of the DaemonSet. */
  readonly annotations: Labels;
  /** Receives what users add to the pods. */
  readonly additions: Additions;
  readonly daemonSetSpec: Part<k8s.DaemonSetSpec>;
}

/** With `nri.enabled`: the NRI plugin on every node, and the policy that requires it. */
export class LinkerdNri extends Construct {
  /** If `networkPolicy.enabled` is also set: only probes and metrics reach the pods. */
  readonly networkPolicy: ApiObject;
  /** The NRI plugin on every node. */
  readonly daemonSet: ApiObject;
  private readonly additions: Additions;

  constructor(scope: Construct, id: string, props: LinkerdNriProps) {
    super(scope, id);
    const { values, metadata, annotations, additions, daemonSetSpec } = props;
    this.additions = additions;
    const { enabled, require } = values.nri;
    const clusterMetadata = { ...props.clusterMetadata, name: NRI_NAME };
    const add = <Props>(id: string, type: GroupVersionKind, manifest: HelmManifest<Props>) =>
      new HelmObject<Props>(this, id, type, manifest);
    this.networkPolicy = add<k8s.KubeNetworkPolicyProps>("network-policy", k8s.KubeNetworkPolicy.GVK, {
      when: and(enabled, values.networkPolicy.enabled),
      metadata: metadata(),
      spec: networkPolicySpec(values),
    });
    mutatingPolicy(this, "require", require.admissionPolicy, {
      when: enabled,
      metadata: { ...clusterMetadata, name: `${NRI_NAME}-require` },
      spec: requirePolicy,
    });
    this.daemonSet = add<k8s.KubeDaemonSetProps>("daemon-set", k8s.KubeDaemonSet.GVK, {
      when: enabled,
      metadata: metadata(NRI_SELECTOR, annotations),
      spec: daemonSetSpec,
    });
  }

  /** Adds a container to the NRI plugin's pods. */
  addContainer(container: Templated<k8s.Container>): void {
    this.additions.containers.push(container);
  }

  /** Adds an init container to the NRI plugin's pods, which ends before the plugin starts. */
  addInitContainer(container: Templated<k8s.Container>): void {
    this.additions.initContainers.push(container);
  }

  /** Adds a volume to the NRI plugin's pods, which containers mount by name. */
  addVolume(volume: Templated<k8s.Volume>): void {
    this.additions.volumes.push(volume);
  }

  /** Adds an environment variable to the NRI plugin. */
  addEnv(variable: Templated<k8s.EnvVar>): void {
    this.additions.env.push(variable);
  }
}
