import type { NamespaceObject } from "../../kubernetes/types";
import type { Notice } from "../../kubernetes/watch";
import { Store } from "./store";

/** What is known about a namespace. */
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

/** The cluster's namespaces, kept up to date by a watch's notices. */
export class Namespaces {
  private readonly store: Store<NamespaceObject, Namespace>;

  /** `changed` is told the name of every namespace that may have changed or is gone, `synced` the end of every list. */
  constructor(changed: (name: string) => void = () => undefined, synced: () => void = () => undefined) {
    this.store = new Store({ key: ({ metadata }) => metadata?.name ?? "", view: namespaceOf, changed, synced });
  }

  /** Whether all of them have been listed. */
  get synced(): boolean {
    return this.store.synced;
  }

  get(name: string): Namespace | undefined {
    return this.store.get(name);
  }

  names(): IterableIterator<string> {
    return this.store.keys();
  }

  all(): IterableIterator<Namespace> {
    return this.store.values();
  }

  apply(notice: Notice<NamespaceObject>): void {
    this.store.apply(notice);
  }
}
