/** What is read of a cluster, as far as it is checked. */
import type { ObjectMeta } from "../../kubernetes/types";

interface Container {
  readonly name: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

export interface DaemonSet {
  readonly metadata: ObjectMeta & { readonly generation?: number };
  readonly spec?: {
    readonly updateStrategy?: { readonly type?: string };
    readonly template?: {
      readonly spec?: {
        readonly containers?: readonly Container[];
        readonly nodeSelector?: Readonly<Record<string, string>>;
      };
    };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly desiredNumberScheduled?: number;
    readonly currentNumberScheduled?: number;
    readonly updatedNumberScheduled?: number;
    readonly numberReady?: number;
  };
}

interface ContainerStatus {
  readonly name: string;
  readonly ready?: boolean;
  readonly state?: {
    readonly running?: object;
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly terminated?: { readonly reason?: string; readonly message?: string; readonly exitCode?: number };
  };
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly message?: string;
}

export interface CheckedPod {
  readonly metadata: ObjectMeta & { readonly ownerReferences?: readonly { readonly uid?: string }[] };
  readonly spec?: {
    readonly nodeName?: string;
    readonly affinity?: {
      readonly nodeAffinity?: {
        readonly requiredDuringSchedulingIgnoredDuringExecution?: {
          readonly nodeSelectorTerms?: readonly {
            readonly matchFields?: readonly { readonly key?: string; readonly values?: readonly string[] }[];
          }[];
        };
      };
    };
  };
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

export interface Event {
  readonly message?: string;
  readonly lastTimestamp?: string;
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

/** The installer's container, and its variables. */
export function installerOf(daemonSet: DaemonSet | undefined): ReadonlyMap<string, string | undefined> {
  const containers = daemonSet?.spec?.template?.spec?.containers ?? [];
  const env = containers.find(({ name }) => name === "install-cni")?.env ?? [];
  return new Map(env.map(({ name, value }) => [name, value]));
}

/** Whether a DaemonSet is of this project's chart, and not of linkerd's own. */
export function isOurs(daemonSet: DaemonSet): boolean {
  return installerOf(daemonSet).has("DAEMONSET_NAME");
}
