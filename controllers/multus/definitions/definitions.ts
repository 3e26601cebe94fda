import type { Log } from "../../../cni/log";
import type { Notice } from "../../../kubernetes/watch";
import { Store } from "../store";
import { API_VERSION, type Definition, type DefinitionObject, definitionOf, KIND } from "./definition";

interface Options {
  readonly log: Log;
  /** Told about every namespace whose definition may have changed. */
  readonly changed: (namespace: string) => void;
  readonly synced: () => void;
}

/** The definitions of our name by namespace; there may be no such kind before Multus is installed. */
export class Definitions {
  private readonly store: Store<DefinitionObject, Definition>;
  /** Said once: the API server does not know the kind. */
  private waiting = false;
  private lastConfig: string | undefined;

  constructor(private readonly options: Options) {
    this.store = new Store<DefinitionObject, Definition>({
      key: ({ metadata }) => metadata?.namespace ?? "",
      view: (object) => this.view(object),
      changed: options.changed,
      synced: () => this.listed(),
    });
  }

  get synced(): boolean {
    return this.store.synced;
  }

  get(namespace: string): Definition | undefined {
    return this.store.get(namespace);
  }

  apply(notice: Notice<DefinitionObject>): void {
    this.store.apply(notice);
  }

  /** The API server does not know the kind. */
  unknown(): void {
    this.store.clear();
    if (!this.waiting) this.options.log.warn(`there is no ${KIND} (${API_VERSION}) in this cluster: waits for Multus`);
    this.waiting = true;
  }

  private listed(): void {
    if (this.waiting) this.options.log.info(`there is a ${KIND} (${API_VERSION}) in this cluster now`);
    this.waiting = false;
    this.options.synced();
  }

  /** Thousands of definitions say the same: it is kept once. */
  private view(object: DefinitionObject): Definition {
    const definition = definitionOf(object);
    if (definition.config === this.lastConfig) return { ...definition, config: this.lastConfig };
    this.lastConfig = definition.config;
    return definition;
  }
}
