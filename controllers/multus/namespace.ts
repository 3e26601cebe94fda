import type { NamespaceObject } from "../../kubernetes/types";

/** The parts of a namespace that are kept. */
export interface Namespace {
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  /** It is being deleted: nothing can be created in it any more. */
  readonly terminating: boolean;
}

/** kubectl keeps a copy of the whole object in it. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

export function namespaceOf({ metadata }: NamespaceObject): Namespace {
  const { [LAST_APPLIED]: _, ...annotations } = metadata?.annotations ?? {};
  return {
    name: metadata?.name ?? "",
    annotations,
    terminating: metadata?.deletionTimestamp !== undefined,
  };
}
