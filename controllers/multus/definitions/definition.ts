import { Label, MULTUS_NAME, NetworkDefinition } from "../../../cni/contract";
import { resource } from "../../../kubernetes/resources";
import type { ObjectMeta } from "../../../kubernetes/types";

export interface DefinitionObject {
  readonly metadata?: ObjectMeta & { readonly managedFields?: readonly { readonly manager?: string }[] };
  readonly spec?: { readonly config?: string };
}

export const DEFINITIONS = resource<DefinitionObject>(
  NetworkDefinition.apiVersion,
  NetworkDefinition.kind,
  "network-attachment-definitions",
);

/** The stored parts of a definition. */
export interface Definition {
  readonly uid: string;
  readonly resourceVersion: string;
  /** A definition without our label belongs to another owner. */
  readonly ours: boolean;
  /** It is being deleted. */
  readonly deleting: boolean;
  readonly config: string | undefined;
}

export function definitionOf({ metadata, spec }: DefinitionObject): Definition {
  return {
    uid: metadata?.uid ?? "",
    resourceVersion: metadata?.resourceVersion ?? "",
    ours: metadata?.labels?.[Label.managedBy] === MULTUS_NAME,
    deleting: metadata?.deletionTimestamp !== undefined,
    config: spec?.config,
  };
}
