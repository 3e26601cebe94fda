import type { ObjectMeta } from "../../kubernetes/types";

/** What a repair looks at in a pod; the rest of the object is left as it comes. */

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
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

interface Container {
  readonly name: string;
  readonly ports?: readonly { readonly containerPort?: number }[];
}

export interface Pod {
  readonly metadata?: ObjectMeta & { readonly ownerReferences?: readonly OwnerReference[] };
  readonly spec?: {
    readonly restartPolicy?: string;
    readonly hostNetwork?: boolean;
    readonly containers?: readonly Container[];
    readonly initContainers?: readonly Container[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly lastTransitionTime?: string;
    }[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
}

/** What brings a pod back when it is deleted. */
export const controllerOf = ({ metadata }: Pod): OwnerReference | undefined =>
  metadata?.ownerReferences?.find((reference) => reference.controller === true);
