import { Label, MULTUS_NAME, NetworkDefinition } from "../../../cni/contract";
import { resource } from "../../../kubernetes/resources";
import type { ObjectMeta } from "../../../kubernetes/types";

/** The NetworkAttachmentDefinitions that this operator looks after, one a namespace. */
export const DEFINITION_NAME = NetworkDefinition.name;

/** Who writes the fields of a definition, in its managedFields and its label. */
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

/** What is kept of a definition. */
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
