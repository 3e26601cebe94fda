import type { k8s } from "cdk8s-plus-27";
import {
  AdminPath,
  Annotation,
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
  eq,
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
import { matchConstraints } from "./admission";
import { imageOf, programCommand, resourcesOf } from "./container";
import type { Feature } from "./feature";
import { ingressOnly, tcp } from "./network-policy";
import { pluginRules } from "./plugin-token";
import { configured, logLevelOf, type PodParts, placementOf, seLinuxOptionsOf } from "./pod";
import type { Values } from "./props";

/** What selects the pods: others than the installer's. */
export const NRI_SELECTOR = { [Label.app]: NRI_NAME };

/** The name of the port with probes and metrics. */
export const NRI_PORT_NAME = "nri-admin";

/**
 * What entering a network namespace and programming it takes. Without the prefix CAP_, as Kubernetes writes them: the
 * API server refuses CAP_SYS_ADMIN, so written, beside allowPrivilegeEscalation: false.
 */
export const NRI_CAPABILITIES = ["NET_ADMIN", "SYS_ADMIN"] as const;

/** Whether the plugin looks pods up itself: without the directory it cannot ask the installer. Then it needs a token. */
export const nriAsksApi = ({ pluginLog, podLookup }: Refs<Values>): Input<boolean> =>
  and(not(pluginLog), not(eq<string>(podLookup, "annotations")));

/** What the NRI plugin asks for: what the CNI plugin does. */
export const nriRules = pluginRules;

/** The NRI plugin programs by netlink alone: other modes call programs of the host, which its container does not have. */
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
  const { nri, pluginLog } = values;
  return {
    name: Container.nri,
    ...imageOf(values),
    command: programCommand("nri"),
    env: [
      configured(NriVariable.stanza, ConfigMapKey.stanza),
      { name: NriVariable.logLevel, value: logLevelOf(values) },
      { name: NriVariable.socketDir, value: nri.socketDir },
      { name: NriVariable.netnsDir, value: nri.netnsDir },
      { name: NriVariable.index, value: checkedIndex(values) },
    ],
    ports: [{ name: NRI_PORT_NAME, containerPort: NRI_PORT, protocol: "TCP" }],
    livenessProbe: {
      httpGet: { path: AdminPath.live, port: NRI_PORT },
      initialDelaySeconds: 10,
      periodSeconds: 10,
      timeoutSeconds: 3,
    },
    readinessProbe: { httpGet: { path: AdminPath.ready, port: NRI_PORT }, periodSeconds: 5, timeoutSeconds: 3 },
    resources: resourcesOf(nri.resources),
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"], add: NRI_CAPABILITIES },
      readOnlyRootFilesystem: true,
      runAsUser: 0,
      seLinuxOptions: seLinuxOptionsOf(values),
      seccompProfile: { type: "RuntimeDefault" },
    },
    volumeMounts: [
      // The directory, since a mounted socket stays dead after a restart of the runtime.
      { name: "nri-socket-dir", mountPath: nri.socketDir },
      // Namespaces are mounted there as pods start.
      { name: "netns-dir", mountPath: nri.netnsDir, mountPropagation: "HostToContainer", readOnly: true },
      when(pluginLog, { name: "linkerd-run-dir", mountPath: NodePath.runDir }),
    ],
  };
}

/** The pods of the NRI plugin. */
export function nriPodSpec(
  values: Refs<Values>,
  securityContext: Templated<k8s.PodSecurityContext>,
  features: readonly Feature[],
): PodParts {
  const { nri, pluginLog } = values;
  // Where the runtime has NRI switched off there is no directory: then the plugin itself says so.
  const type = "DirectoryOrCreate";
  return {
    serviceAccountName: NRI_NAME,
    automountServiceAccountToken: nriAsksApi(values),
    ...placementOf(values, features),
    securityContext,
    containers: [container(values)],
    volumes: [
      { name: "nri-socket-dir", hostPath: { path: nri.socketDir, type } },
      { name: "netns-dir", hostPath: { path: nri.netnsDir, type } },
      when(pluginLog, { name: "linkerd-run-dir", hostPath: { path: NodePath.runDir, type } }),
    ],
  };
}

/** The new pod comes first: two NRI plugins at once do no harm, and without one pods would start without it. */
export const nriUpdateStrategy: Templated<k8s.DaemonSetUpdateStrategy> = {
  type: "RollingUpdate",
  rollingUpdate: { maxSurge: 1, maxUnavailable: 0 },
};

/** Lets connections to the probes and metrics in, and no others. */
export const nriNetworkPolicySpec = ({ networkPolicy: { from } }: Refs<Values>): Part<k8s.NetworkPolicySpec> =>
  ingressOnly(NRI_SELECTOR, [{ from: present(from), ports: [tcp(NRI_PORT)] }] as Templated<
    k8s.NetworkPolicyIngressRule[]
  >);

const annotation = (name: string) => `object.metadata.?annotations["${name}"].hasValue()`;

/**
 * A policy that has the runtime's validator refuse containers of meshed pods while the NRI plugin is not connected.
 *
 * The API server runs such policies before webhooks, and again after a webhook, such as linkerd's injector, has changed
 * the pod; but only those whose conditions held at first. So what the injector adds is no condition of the match, but a
 * part of the mutation, which then has no patch.
 */
export const requirePolicy = {
  // No webhook is called, so an outage cannot keep pods from being created; ignored, an error would open the hole again.
  failurePolicy: "Fail",
  reinvocationPolicy: "IfNeeded",
  matchConstraints: matchConstraints("CREATE", "pods"),
  matchConditions: [
    // Runtimes call no network plugin for these.
    { name: "not-host-network", expression: "!object.spec.?hostNetwork.orValue(false)" },
    // The kubelet runs a static pod from its file, whatever the API's copy says.
    { name: "not-static", expression: `!${annotation(Annotation.mirror)}` },
  ],
  variables: [
    {
      name: "meshed",
      expression:
        `object.metadata.?annotations["${Annotation.proxyVersion}"].orValue("") != "" && ` +
        `!object.spec.?initContainers.orValue([]).exists(container, container.name == "${LinkerdContainer.init}")`,
    },
    // A list of the user's own is left alone: CEL cannot read JSON.
    { name: "told", expression: annotation(Annotation.requiredPlugins) },
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
