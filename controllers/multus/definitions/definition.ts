import type { ObjectMeta } from "../../../kubernetes/types";

/** The NetworkAttachmentDefinitions that this operator looks after, one a namespace. */

export const DEFINITION_NAME = "linkerd-cni";
export const API_VERSION = "k8s.cni.cncf.io/v1";
export const KIND = "NetworkAttachmentDefinition";

/** Who writes the fields of a definition, in its managedFields and its label. */
export const OWNER = "linkerd-multus";
/** A definition without this label and value is somebody else's. */
export const OWNER_LABEL = "app.kubernetes.io/managed-by";

const RESOURCE = "network-attachment-definitions";

/** The definitions of all namespaces that have our name, whosoever they are. */
export const DEFINITIONS = {
  path: `/apis/${API_VERSION}/${RESOURCE}`,
  fieldSelector: `metadata.name=${DEFINITION_NAME}`,
} as const;

export const definitionPath = (namespace: string) =>
  `/apis/${API_VERSION}/namespaces/${namespace}/${RESOURCE}/${DEFINITION_NAME}`;

export interface DefinitionObject {
  readonly metadata?: ObjectMeta & { readonly managedFields?: readonly { readonly manager?: string }[] };
  readonly spec?: { readonly config?: string };
}

/** What is known about a definition. */
export interface Definition {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly ours: boolean;
  /** It is on its way out. */
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

/** What is applied: these fields are ours, all others their writers'. */
export function definitionToApply(config: string, over?: Definition): object {
  return {
    apiVersion: API_VERSION,
    kind: KIND,
    metadata: {
      name: DEFINITION_NAME,
      labels: { [OWNER_LABEL]: OWNER },
      // Only over the very state that was judged.
      ...(over === undefined ? {} : { uid: over.uid, resourceVersion: over.resourceVersion }),
    },
    spec: { config },
  };
}

/** Applied, it gives up all fields that are ours of that definition. */
export function nothingToApply(uid: string): object {
  return { apiVersion: API_VERSION, kind: KIND, metadata: { name: DEFINITION_NAME, uid } };
}
