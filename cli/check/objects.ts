/** The objects of a cluster, as far as the checks read them. */
import { CNI_NAME, Container as ContainerName, InstallerVariable, Label, NRI_NAME } from "../../cni/contract";
import type { ObjectMeta } from "../../kubernetes/types";
import type { ProbedContainer } from "../probes";

/** The name of the chart's resources. */
export const NAME = CNI_NAME;
/** What selects the chart's pods. */
export const SELECTOR = { key: Label.app, value: NAME } as const;
/** The container that installs. */
export const INSTALLER = ContainerName.installer;
/** The values of this label on the chart's pods: the installer's, and those of the NRI plugin. */
export const OWN_PODS: readonly string[] = [NAME, NRI_NAME];

/** Whether a pod is one of the NRI plugin's. */
export const isNri = ({ metadata }: CheckedPod): boolean => metadata.labels?.[SELECTOR.key] === NRI_NAME;

/** The container whose log says what a pod of the chart's does. */
export const mainContainer = (pod: CheckedPod): string => (isNri(pod) ? ContainerName.nri : INSTALLER);

interface Container extends ProbedContainer {
  readonly image?: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

/** A condition on a node's labels or fields. */
export interface Requirement {
  readonly key?: string;
  readonly operator?: string;
  readonly values?: readonly string[];
}

export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
}

interface Affinity {
  readonly nodeAffinity?: {
    readonly requiredDuringSchedulingIgnoredDuringExecution?: {
      readonly nodeSelectorTerms?: readonly {
        readonly matchExpressions?: readonly Requirement[];
        readonly matchFields?: readonly Requirement[];
      }[];
    };
  };
}

/** The parts of a pod's specification that the checks read. */
export interface PodTemplate {
  readonly automountServiceAccountToken?: boolean;
  readonly hostNetwork?: boolean;
  readonly containers?: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly {
    readonly name: string;
    readonly hostPath?: { readonly path: string };
  }[];
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly affinity?: Affinity;
  readonly tolerations?: readonly Toleration[];
}

export interface DaemonSet {
  readonly metadata: ObjectMeta & { readonly generation?: number };
  readonly spec?: {
    readonly updateStrategy?: { readonly type?: string };
    readonly template?: { readonly spec?: PodTemplate };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly desiredNumberScheduled?: number;
    readonly currentNumberScheduled?: number;
    readonly updatedNumberScheduled?: number;
    readonly numberReady?: number;
  };
}

interface Stopped {
  readonly reason?: string;
  readonly message?: string;
  readonly exitCode?: number;
}

interface State {
  readonly running?: object;
  readonly waiting?: Stopped;
  readonly terminated?: Stopped;
}

export interface ContainerStatus {
  readonly name: string;
  readonly image?: string;
  readonly ready?: boolean;
  readonly started?: boolean;
  readonly state?: State;
  readonly lastState?: State;
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

export interface CheckedPod {
  readonly metadata: ObjectMeta & { readonly ownerReferences?: readonly { readonly uid?: string }[] };
  readonly spec?: PodTemplate & { readonly nodeName?: string };
  readonly status?: {
    readonly startTime?: string;
    readonly conditions?: readonly Condition[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

export interface NodeObject extends Named {
  readonly spec?: {
    readonly providerID?: string;
    readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  };
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly nodeInfo?: {
      readonly architecture?: string;
      readonly containerRuntimeVersion?: string;
      readonly kernelVersion?: string;
      readonly kubeletVersion?: string;
      readonly operatingSystem?: string;
      readonly osImage?: string;
    };
  };
}

export interface Event {
  readonly message?: string;
  readonly lastTimestamp?: string | null;
  readonly involvedObject?: { readonly uid?: string };
}

export interface Rule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs?: readonly string[];
}

interface Subject {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}

/** A ServiceAccount, a role, or what binds one to the other. */
export interface Grant {
  readonly apiVersion?: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly rules?: readonly Rule[];
  readonly roleRef?: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly Subject[];
}

export interface Named {
  readonly metadata: ObjectMeta;
}

export interface WebhookConfiguration extends Named {
  readonly webhooks?: readonly {
    readonly name: string;
    readonly failurePolicy?: string;
    readonly clientConfig?: { readonly caBundle?: string; readonly service?: { readonly namespace?: string } };
  }[];
}

export interface Deployment extends Named {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly readyReplicas?: number };
}

const containersOf = (daemonSet: DaemonSet | undefined) => daemonSet?.spec?.template?.spec?.containers ?? [];

/** The variables of the installer's container. */
export function installerOf(daemonSet: DaemonSet | undefined): ReadonlyMap<string, string | undefined> {
  const env = containersOf(daemonSet).find(({ name }) => name === INSTALLER)?.env ?? [];
  return new Map(env.map(({ name, value }) => [name, value]));
}

/** Whether the plugin is in the nodes' chain; without a DaemonSet, as by default. */
export const isChained = (daemonSet: DaemonSet | undefined): boolean =>
  installerOf(daemonSet).get(InstallerVariable.chained) !== "false";

/** The image of the installer's container. */
export const imageOf = (daemonSet: DaemonSet | undefined): string | undefined =>
  containersOf(daemonSet).find(({ name }) => name === INSTALLER)?.image;

/** The container that replaces pods which started before the chain was complete, if it is switched on. */
export const repairOf = (daemonSet: DaemonSet | undefined): Container | undefined =>
  containersOf(daemonSet).find(({ name }) => name === ContainerName.repairController);

/** A directory of the node that the installer's pod mounts. */
export function directoryOf(daemonSet: DaemonSet | undefined, volume: "cni-bin-dir" | "cni-net-dir") {
  const volumes = daemonSet?.spec?.template?.spec?.volumes ?? [];
  // Where both are one directory, it is mounted once.
  const found = volumes.find(({ name }) => name === volume) ?? volumes.find(({ name }) => name === "cni-bin-dir");
  return found?.hostPath?.path;
}

/** Whether a DaemonSet is of this project's chart, and not of linkerd's own. */
export function isOurs(daemonSet: DaemonSet): boolean {
  return installerOf(daemonSet).has(InstallerVariable.healthPort);
}

/** A condition of a pod or a node. */
export const conditionOf = (
  object: { readonly status?: { readonly conditions?: readonly Condition[] } },
  type: string,
) => object.status?.conditions?.find((each) => each.type === type);

/** Whether a pod serves now, and is not about to end. */
export const isReady = (pod: CheckedPod): boolean =>
  pod.metadata.deletionTimestamp === undefined && conditionOf(pod, "Ready")?.status === "True";

/** Pods in the order in which their logs are worth reading: those that are not ready first. */
export const unreadyFirst = (pods: readonly CheckedPod[]): readonly CheckedPod[] => [
  ...pods.filter((pod) => !isReady(pod)),
  ...pods.filter(isReady),
];

/** How many lines of a log are read: the plugin's lines stand in the installer's log, one for each pod that starts. */
export const LOG_LINES = 20_000;

/** A DaemonSet's pod that has no node yet says for which one it was made. */
export function nodeOf({ spec }: CheckedPod): string {
  if (spec?.nodeName !== undefined) return spec.nodeName;
  const required = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const fields = (required?.nodeSelectorTerms ?? []).flatMap(({ matchFields }) => matchFields ?? []);
  return fields.find(({ key }) => key === "metadata.name")?.values?.[0] ?? "(none)";
}

/** All containers' states, the init containers' first. */
export const statusesOf = ({ status = {} }: CheckedPod): readonly ContainerStatus[] => [
  ...(status.initContainerStatuses ?? []),
  ...(status.containerStatuses ?? []),
];

/** The name of an object, for messages: `shop/web-1`. */
export const pathOf = ({ metadata }: Named): string => `${metadata.namespace}/${metadata.name}`;
