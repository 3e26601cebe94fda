import { Informer, type InformerDeps } from "../../../kubernetes/informer";
import type { Store } from "../../../kubernetes/store";
import { DEFINITION_NAME, DEFINITIONS, type Definition, type DefinitionObject, definitionOf } from "./definition";

interface Options {
  /** Called for every namespace whose definition may have changed. */
  readonly changed: (namespace: string) => void;
  readonly synced: () => void;
}

/** The definitions with our name by namespace; the kind does not exist before Multus is installed. */
export class DefinitionInformer {
  private readonly informer: Informer<DefinitionObject, Definition>;
  /** Whether the log says that the API server does not know the kind. */
  private isUnknown = false;
  private lastConfig: string | undefined;

  constructor(
    private readonly options: Options,
    private readonly deps: InformerDeps,
  ) {
    const selection = { resource: DEFINITIONS, fieldSelector: `metadata.name=${DEFINITION_NAME}` };
    this.informer = new Informer(
      {
        ...selection,
        unknown: () => this.unknown(),
        key: ({ metadata }) => metadata?.namespace ?? "",
        view: (object) => this.view(object),
        changed: options.changed,
        synced: () => this.listed(),
      },
      deps,
    );
  }

  get store(): Store<DefinitionObject, Definition> {
    return this.informer.store;
  }

  /** Runs until the signal is given. */
  run(): Promise<void> {
    return this.informer.run();
  }

  private unknown(): void {
    this.store.clear();
    if (!this.isUnknown) this.deps.log.warn(`there is no ${WHAT} in this cluster: waits for Multus`);
    this.isUnknown = true;
  }

  private listed(): void {
    if (this.isUnknown) this.deps.log.info(`there is a ${WHAT} in this cluster now`);
    this.isUnknown = false;
    this.options.synced();
  }

  /** Thousands of definitions have the same text, which is stored once. */
  private view(object: DefinitionObject): Definition {
    const definition = definitionOf(object);
    if (definition.config === this.lastConfig) return { ...definition, config: this.lastConfig };
    this.lastConfig = definition.config;
    return definition;
  }
}

const WHAT = `${DEFINITIONS.kind} (${DEFINITIONS.group}/${DEFINITIONS.version})`;
