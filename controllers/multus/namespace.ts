import type { NamespaceObject } from "../../kubernetes/types";

/** The stored parts of a namespace. */
export interface Namespace {
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  /** It is being deleted: objects can no longer be created in it. */
  readonly terminating: boolean;
}

/** kubectl stores a copy of the whole object in it. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

export function namespaceOf({ metadata }: NamespaceObject): Namespace {
  const { [LAST_APPLIED]: _, ...annotations } = metadata?.annotations ?? {};
  return {
    name: metadata?.name ?? "",
    annotations,
    terminating: metadata?.deletionTimestamp !== undefined,
  };
}
