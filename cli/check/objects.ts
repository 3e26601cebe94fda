/** The objects of a cluster, as far as the checks read them. */

import type { MutatingWebhookConfiguration } from "kubernetes-types/admissionregistration/v1";
import type { DaemonSet as ApiDaemonSet, Deployment as ApiDeployment } from "kubernetes-types/apps/v1";
import type {
  ContainerStatus as ApiContainerStatus,
  Event as ApiEvent,
  Container,
  Node,
  NodeCondition,
  Pod,
} from "kubernetes-types/core/v1";
import type { ObjectMeta } from "kubernetes-types/meta/v1";
import type { PolicyRule, RoleRef, Subject } from "kubernetes-types/rbac/v1";
import { CNI_NAME, Container as ContainerName, InstallerVariable, Label, NRI_NAME } from "../../cni/contract";

/** The name of the chart's resources. */
export const NAME = CNI_NAME;
/** The label of the chart's pods. */
export const SELECTOR = { key: Label.app, value: NAME } as const;
/** Name of the installer's container. */
const INSTALLER = ContainerName.installer;
/** The values of this label on the chart's pods: the installer's, and those of the NRI plugin. */
export const OWN_PODS: readonly string[] = [NAME, NRI_NAME];

/** Whether a pod is one of the NRI plugin's. */
export const isNri = ({ metadata }: CheckedPod): boolean => metadata.labels?.[SELECTOR.key] === NRI_NAME;

/** The main container of a pod of the chart. */
export const mainContainer = (pod: CheckedPod): string => (isNri(pod) ? ContainerName.nri : INSTALLER);

/** What identifies an object or an item of a list. */
type Identity = "name" | "type" | "key" | "effect" | "status";

/** An object as an API server sends it: fields that its type requires may be absent, except those that identify it. */
export type Sent<T> = T extends readonly (infer Item)[]
  ? readonly Sent<Item>[]
  : string extends keyof T
    ? Readonly<T>
    : T extends object
      ? { readonly [Key in keyof Omit<T, Identity>]?: Sent<T[Key]> } & {
          readonly [Key in keyof Pick<T, Identity & keyof T>]: Sent<T[Key]>;
        }
      : T;

/** Any object with a name. */
export interface Named {
  readonly metadata: Sent<ObjectMeta>;
}

/** An object with a name. */
export type Checked<T> = Named & Sent<Omit<T, "metadata">>;

export type CheckedPod = Checked<Pod>;
export type DaemonSet = Checked<ApiDaemonSet>;
export type Deployment = Checked<ApiDeployment>;
export type NodeObject = Checked<Node>;
export type WebhookConfiguration = Checked<MutatingWebhookConfiguration>;
export type Event = Sent<Omit<ApiEvent, "metadata">>;
export type ContainerStatus = Sent<ApiContainerStatus>;
export type Rule = Sent<PolicyRule>;

/** A ServiceAccount, a role, or what binds one to the other. */
export interface Grant extends Named {
  readonly kind: string;
  readonly rules?: readonly Rule[];
  readonly roleRef?: Sent<RoleRef>;
  readonly subjects?: readonly Sent<Subject>[];
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
export const repairOf = (daemonSet: DaemonSet | undefined): Sent<Container> | undefined =>
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
  object: { readonly status?: { readonly conditions?: readonly Sent<NodeCondition>[] } },
  type: string,
) => object.status?.conditions?.find((each) => each.type === type);

/** Whether a pod serves now, and is not about to end. */
export const isReady = (pod: CheckedPod): boolean =>
  pod.metadata.deletionTimestamp === undefined && conditionOf(pod, "Ready")?.status === "True";

/** Sorts pods that are not ready first: their logs matter most. */
export const unreadyFirst = (pods: readonly CheckedPod[]): readonly CheckedPod[] => [
  ...pods.filter((pod) => !isReady(pod)),
  ...pods.filter(isReady),
];

/** How many lines of a log are read. The installer's log has a line of the plugin for each pod that starts. */
export const LOG_LINES = 20_000;

/** A DaemonSet's pod that is not scheduled yet names its node in its affinity. */
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
