import { Annotation, ENABLED } from "../../../cni/contract";
import type { Namespace } from "../namespace";
import type { Definition } from "./definition";

/** The action for one namespace. */
export type DefinitionPlan =
  | { readonly kind: "leave" }
  | { readonly kind: "create"; readonly config: string }
  | { readonly kind: "update"; readonly definition: Definition; readonly config: string }
  | { readonly kind: "delete"; readonly definition: Definition }
  /** Another owner's definition has our name. */
  | { readonly kind: "foreign"; readonly definition: Definition };

const LEAVE: DefinitionPlan = { kind: "leave" };

/** Whether a namespace should have a definition; Linkerd's control plane always does. */
function wantsDefinition({ name, annotations }: Namespace, linkerdNamespace: string): boolean {
  return name === linkerdNamespace || annotations[Annotation.multus] === ENABLED;
}

/** The known state of one namespace. */
interface Situation {
  /** Undefined if the namespace does not exist. */
  readonly namespace: Namespace | undefined;
  /** Its definition with our name. */
  readonly definition: Definition | undefined;
  /** The wanted `spec.config`; undefined while the ConfigMap is missing or wrong. */
  readonly config: string | undefined;
  readonly linkerdNamespace: string;
}

/** The definition that a namespace should have. */
function planWanted(definition: Definition | undefined, config: string | undefined): DefinitionPlan {
  if (definition === undefined) return config === undefined ? LEAVE : { kind: "create", config };
  if (!definition.ours) return { kind: "foreign", definition };
  return config === undefined || config === definition.config ? LEAVE : { kind: "update", definition, config };
}

/** Decides the action. Pure: no I/O, no clock. */
export function planDefinition({ namespace, definition, config, linkerdNamespace }: Situation): DefinitionPlan {
  if (namespace === undefined || namespace.terminating || definition?.deleting === true) return LEAVE;
  if (wantsDefinition(namespace, linkerdNamespace)) return planWanted(definition, config);
  return definition?.ours === true ? { kind: "delete", definition } : LEAVE;
}

interface Known {
  readonly namespaces: Iterable<Namespace>;
  /** The definition with our name in a namespace. */
  readonly definition: (namespace: string) => Definition | undefined;
  readonly linkerdNamespace: string;
}

/** Number of namespaces that want a definition, and of those that have ours or another owner's. */
export function countDefinitions({ namespaces, definition, linkerdNamespace }: Known) {
  const wanting = [...namespaces].filter((each) => !each.terminating && wantsDefinition(each, linkerdNamespace));
  const found = wanting.map(({ name }) => definition(name));
  return {
    ours: found.filter((each) => each?.ours === true).length,
    foreign: found.filter((each) => each?.ours === false).length,
    wanted: wanting.length,
  };
}
