/** The members of Kubernetes objects that this project reads; others pass unchanged. */

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}

export interface ObjectMeta {
  readonly name?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
}

/** An object of any kind. */
export interface KubernetesObject {
  readonly metadata?: ObjectMeta;
}

interface ContainerSpec {
  readonly name: string;
  readonly ports?: readonly { readonly containerPort?: number }[];
}

interface ContainerState {
  readonly running?: object;
  readonly waiting?: object;
  readonly terminated?: { readonly exitCode?: number; readonly finishedAt?: string };
}

export interface ContainerStatus {
  readonly name: string;
  readonly ready?: boolean;
  readonly state?: ContainerState;
  readonly lastState?: ContainerState;
}

export interface PodObject {
  readonly metadata?: ObjectMeta & { readonly ownerReferences?: readonly OwnerReference[] };
  readonly spec?: {
    readonly nodeName?: string;
    readonly restartPolicy?: string;
    readonly hostNetwork?: boolean;
    readonly containers?: readonly ContainerSpec[];
    readonly initContainers?: readonly ContainerSpec[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly podIPs?: readonly { readonly ip?: string }[];
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly lastTransitionTime?: string;
    }[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
}

export interface NamespaceObject {
  readonly metadata?: ObjectMeta;
  readonly status?: { readonly phase?: string };
}

/** A taint of a node. */
export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

export interface NodeObject {
  readonly metadata?: ObjectMeta;
  readonly spec?: { readonly taints?: readonly Taint[] };
  readonly status?: { readonly nodeInfo?: { readonly containerRuntimeVersion?: string } };
}

export interface ServiceObject {
  readonly metadata?: ObjectMeta;
  readonly spec?: {
    readonly ports?: readonly { readonly port?: number; readonly targetPort?: number | string }[];
  };
}

export interface SecretObject {
  readonly metadata?: ObjectMeta;
  readonly type?: string;
  /** Values in base64. */
  readonly data?: Readonly<Record<string, string>>;
}

export interface ConfigMapObject {
  readonly metadata?: ObjectMeta;
  readonly data?: Readonly<Record<string, string>>;
}

export interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

export interface LeaseObject {
  readonly metadata?: ObjectMeta;
  readonly spec?: LeaseSpec;
}

/** The object of an Event. */
export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string | undefined;
}

/** An Event of events.k8s.io/v1. */
export interface EventObject {
  readonly metadata?: ObjectMeta;
  readonly eventTime?: string;
  readonly reportingController?: string;
  readonly reportingInstance?: string;
  readonly type?: string;
  readonly reason?: string;
  readonly action?: string;
  readonly note?: string;
  readonly regarding?: Partial<ObjectReference>;
  readonly related?: Partial<ObjectReference> | undefined;
}
