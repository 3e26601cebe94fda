/** The few members of Kubernetes objects that this project reads; everything else is left as it comes. */

export interface ObjectMeta {
  readonly name?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
}

export interface ContainerSpec {
  readonly name: string;
}

export interface PodObject {
  readonly metadata?: ObjectMeta;
  readonly spec?: {
    readonly containers?: readonly ContainerSpec[];
    readonly initContainers?: readonly ContainerSpec[];
  };
}

export interface NamespaceObject {
  readonly metadata?: ObjectMeta;
}

export interface ServiceObject {
  readonly metadata?: ObjectMeta;
  readonly spec?: {
    readonly ports?: readonly { readonly port?: number; readonly targetPort?: number | string }[];
  };
}
