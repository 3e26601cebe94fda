import type { Namespace } from "../namespaces";
import type { Definition } from "./definition";
import { wantsDefinition } from "./plan";

interface Known {
  readonly namespaces: Iterable<Namespace>;
  /** The definition of our name in a namespace. */
  readonly definition: (namespace: string) => Definition | undefined;
  readonly linkerdNamespace: string;
}

/** How many namespaces want a definition, and how many of these have ours, or somebody else's. */
export function countDefinitions({ namespaces, definition, linkerdNamespace }: Known) {
  const wanting = [...namespaces].filter((each) => !each.terminating && wantsDefinition(each, linkerdNamespace));
  const found = wanting.map(({ name }) => definition(name));
  return {
    ours: found.filter((each) => each?.ours === true).length,
    foreign: found.filter((each) => each?.ours === false).length,
    wanted: wanting.length,
  };
}
