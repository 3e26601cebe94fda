import { Label, MULTUS_NAME, NetworkDefinition } from "../../../cni/contract";
import { resource } from "../../../kubernetes/resources";
import type { ObjectMeta } from "../../../kubernetes/types";

/** The NetworkAttachmentDefinitions of this operator, one per namespace. */
export const DEFINITION_NAME = NetworkDefinition.name;

/** The field manager of a definition and the value of its label. */
export const OWNER = MULTUS_NAME;
/** A definition without this label and value belongs to another owner. */
export const OWNER_LABEL = Label.managedBy;

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
  readonly ours: boolean;
  /** It is being deleted. */
  readonly deleting: boolean;
  readonly config: string | undefined;
}

export function definitionOf({ metadata, spec }: DefinitionObject): Definition {
  return {
    uid: metadata?.uid ?? "",
    resourceVersion: metadata?.resourceVersion ?? "",
    ours: metadata?.labels?.[OWNER_LABEL] === OWNER,
    deleting: metadata?.deletionTimestamp !== undefined,
    config: spec?.config,
  };
}
