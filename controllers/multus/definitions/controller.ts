import { Label, MULTUS_NAME, NetworkDefinition } from "../../../cni/contract";
import { reasonOf } from "../../../cni/errors";
import { ApiUnreachable } from "../../../kubernetes/api-server";
import type { EventSpec } from "../../../kubernetes/events";
import { Informer, type InformerDeps } from "../../../kubernetes/informer";
import type { Leadership } from "../../../kubernetes/leader-election";
import { RateLimiter } from "../../../kubernetes/rate-limiter";
import { apiVersionOf } from "../../../kubernetes/resources";
import type { Store } from "../../../kubernetes/store";
import type { NamespaceObject } from "../../../kubernetes/types";
import { WorkQueue } from "../../../kubernetes/work-queue";
import { ConflictBackoff } from "../conflict-backoff";
import type { Metrics } from "../metrics";
import type { Namespace } from "../namespace";
import type { Settings } from "../settings";
import { ConfigMapInformer } from "./config-map";
import { DEFINITIONS, type Definition, type DefinitionObject, definitionOf } from "./definition";
import { countDefinitions, type DefinitionPlan, planDefinition } from "./plan-definition";
import { type DefinitionWriter, Stale } from "./writer";

interface DefinitionControllerDeps extends InformerDeps {
  readonly settings: Settings;
  readonly namespaces: Store<NamespaceObject, Namespace>;
  readonly leadership: Leadership;
  readonly writer: DefinitionWriter;
  readonly metrics: Metrics;
}

/** The ConfigMap's key in the queue, besides the namespaces' names. */
const CONFIG_KEY = ":config";
/** Concurrent requests. */
const WORKERS = 4;
const KIND = `${DEFINITIONS.kind} (${DEFINITIONS.group}/${DEFINITIONS.version})`;

/** Reasons of Events. Each has a page in docs/runbooks. */
const FOREIGN_DEFINITION: EventSpec = {
  reason: "LinkerdMultusForeignDefinition",
  action: "Leaving",
  type: "Warning",
  note:
    `The namespace needs a NetworkAttachmentDefinition ${NetworkDefinition.name} of the Multus operator, but this one ` +
    `is not its own (label ${Label.managedBy}=${MULTUS_NAME}) and is left as it is; delete or rename it`,
};
const configInvalid = (problem: string): EventSpec => ({
  reason: "LinkerdMultusConfigInvalid",
  action: "Waiting",
  type: "Warning",
  note: `${problem}. Existing NetworkAttachmentDefinitions stay as they are, and no other is created until this is fixed`,
});

/** Reconciles the definition of every namespace, while this process leads. */
export class DefinitionController {
  /** The definitions with our name by namespace; the kind does not exist before Multus is installed. */
  private readonly definitions: Informer<DefinitionObject, Definition>;
  /** Whether the log says that the API server does not know the kind. */
  private isUnknown = false;
  private lastConfig: string | undefined;
  private readonly configMap: ConfigMapInformer;
  private readonly queue: WorkQueue;
  private readonly limiter: RateLimiter;
  private readonly conflicts = new ConflictBackoff();
  /** UIDs of the foreign definitions with a published Event, by namespace. */
  private readonly reported = new Map<string, string>();

  constructor(private readonly deps: DefinitionControllerDeps) {
    const { clock, settings } = deps;
    this.limiter = new RateLimiter(settings.rate, clock);
    const failed = (key: string, error: unknown, failures: number, retryMs: number) =>
      this.failed(key, error, failures, retryMs);
    this.queue = new WorkQueue((key) => this.reconcile(key), { ...deps, failed });
    this.definitions = new Informer(
      {
        resource: DEFINITIONS,
        fieldSelector: `metadata.name=${NetworkDefinition.name}`,
        unknown: () => this.unknown(),
        key: ({ metadata }) => metadata?.namespace ?? "",
        view: (object) => this.view(object),
        changed: (namespace) => this.changed(namespace),
        synced: () => this.listed(),
      },
      deps,
    );
    const configMap = { namespace: settings.cniNamespace, kubeconfig: settings.cniKubeconfig };
    this.configMap = new ConfigMapInformer({ ...configMap, changed: () => this.configChanged() }, deps);
    this.measure();
  }

  /** A namespace may have changed. */
  changed(namespace: string): void {
    this.queue.add(namespace);
  }

  /** Anything may have changed, or can only now be acted on. */
  everything(): void {
    if (!this.active) return;
    this.queue.add(CONFIG_KEY);
    for (const namespace of this.deps.namespaces.keys()) this.queue.add(namespace);
  }

  /** Writes until the signal is given, and finishes current writes. */
  async write(): Promise<void> {
    await this.queue.run(WORKERS);
  }

  /** Watches the inputs until the signal is given. */
  async follow(): Promise<void> {
    await Promise.all([this.definitions.run(), this.configMap.run()]);
  }

  /** Whether all inputs are known and this process leads. */
  private get active(): boolean {
    const { leadership, namespaces, signal } = this.deps;
    const known = namespaces.synced && this.definitions.store.synced && this.configMap.synced;
    return known && leadership.leading && !signal.aborted;
  }

  private unknown(): void {
    this.definitions.store.clear();
    if (!this.isUnknown) this.deps.log.warn(`there is no ${KIND} in this cluster: waits for Multus`);
    this.isUnknown = true;
  }

  private listed(): void {
    if (this.isUnknown) this.deps.log.info(`there is a ${KIND} in this cluster now`);
    this.isUnknown = false;
    this.everything();
  }

  /** Thousands of definitions have the same text, which is stored once. */
  private view(object: DefinitionObject): Definition {
    const definition = definitionOf(object);
    if (definition.config === this.lastConfig) return { ...definition, config: this.lastConfig };
    this.lastConfig = definition.config;
    return definition;
  }

  private configChanged(): void {
    const { config } = this.configMap;
    if (config.kind === "invalid") this.deps.log.warn(config.problem);
    else this.deps.log.info("read the configuration of the definitions");
    this.everything();
  }

  private async reconcile(key: string): Promise<void> {
    const { clock, metrics, signal } = this.deps;
    if (!this.active) return;
    if (key === CONFIG_KEY) return this.reportConfig();
    const first = this.planFor(key);
    if (first.kind === "leave" || this.putOff(key, first)) return;
    await this.limiter.turn(signal);
    // The state may have changed while it waited.
    if (!this.active) return;
    const start = clock.now();
    await this.carryOut(key, this.planFor(key));
    metrics.reconcileSeconds.observe((clock.now() - start) / 1_000);
  }

  /** Delays a correction that another client keeps undoing. @returns whether it delayed it */
  private putOff(namespace: string, planned: DefinitionPlan): boolean {
    const { clock, log, metrics } = this.deps;
    if (planned.kind !== "create" && planned.kind !== "update") return false;
    const pauseMs = this.conflicts.wait(namespace, planned.config, clock.now());
    if (pauseMs === 0) return false;
    this.queue.addAfter(namespace, pauseMs);
    if (this.conflicts.defer(namespace)) {
      metrics.conflicts.inc();
      const seconds = Math.ceil(pauseMs / 1_000);
      log.warn(`another client keeps changing the definition; it is corrected in ${seconds} s`, { namespace });
    }
    return true;
  }

  private planFor(name: string): DefinitionPlan {
    const { namespaces, settings } = this.deps;
    const { config } = this.configMap;
    const planned = planDefinition({
      namespace: namespaces.get(name),
      definition: this.definitions.store.get(name),
      config: config.kind === "valid" ? config.text : undefined,
      linkerdNamespace: settings.linkerdNamespace,
    });
    if (planned.kind !== "foreign") this.reported.delete(name);
    else if (this.reported.get(name) === planned.definition.uid) return { kind: "leave" };
    return planned;
  }

  private async carryOut(namespace: string, planned: DefinitionPlan): Promise<void> {
    const { clock, writer } = this.deps;
    if (planned.kind === "foreign") return this.reportForeign(namespace, planned.definition.uid);
    if (planned.kind === "delete") return this.remove(namespace, planned.definition);
    if (planned.kind === "create") await writer.create(namespace, planned.config, () => this.active);
    else if (planned.kind === "update") await writer.update(namespace, planned.definition, planned.config);
    else return;
    this.conflicts.wrote(namespace, planned.config, clock.now());
  }

  /** A watch may be behind, and pods without their definition do not start, so ask the API server first. */
  private async remove(name: string, definition: Definition): Promise<void> {
    const { log, settings, writer } = this.deps;
    const { linkerdNamespace } = settings;
    const namespace = await writer.namespace(name);
    // Another process may lead by the time of the answer.
    if (!this.active) return;
    if (planDefinition({ namespace, definition, config: undefined, linkerdNamespace }).kind !== "delete") {
      log.debug("keeps the definition: the watch was behind, and the namespace wants it", { namespace: name });
      return;
    }
    this.conflicts.forget(name);
    await writer.delete(name, definition);
  }

  private async reportForeign(namespace: string, uid: string): Promise<void> {
    const { log, writer } = this.deps;
    log.warn(FOREIGN_DEFINITION.note, { namespace });
    const { kind } = DEFINITIONS;
    const regarding = { apiVersion: apiVersionOf(DEFINITIONS), kind, namespace, name: NetworkDefinition.name, uid };
    await writer.publish(regarding, FOREIGN_DEFINITION, `foreign-${uid}`);
    this.reported.set(namespace, uid);
  }

  private async reportConfig(): Promise<void> {
    const { config, digest, reference } = this.configMap;
    if (config.kind === "valid") return;
    await this.deps.writer.publish(reference, configInvalid(config.problem), `invalid-${digest}`);
  }

  private failed(key: string, error: unknown, failures: number, retryMs: number): void {
    const { log } = this.deps;
    // During an outage of the API server the watches log it; afterwards the first failure matters.
    const quiet = error instanceof Stale || error instanceof ApiUnreachable || failures > 1;
    const about = key === CONFIG_KEY ? {} : { namespace: key };
    const seconds = (retryMs / 1_000).toFixed(1);
    log[quiet ? "debug" : "warn"](`${reasonOf(error)}; next attempt in ${seconds} s`, { ...about, failures });
  }

  private measure(): void {
    const { metrics, namespaces, settings } = this.deps;
    const { registry } = metrics;
    const { linkerdNamespace } = settings;
    const definition = (name: string) => this.definitions.store.get(name);
    const definitions = {
      name: "definitions",
      help: "Namespaces by the state of their NetworkAttachmentDefinition: wanted, ours or foreign.",
      label: "state",
    };
    registry.gaugeBy(definitions, () =>
      countDefinitions({ namespaces: namespaces.values(), definition, linkerdNamespace }),
    );
    const depth = { name: "queue_depth", help: "Namespaces that wait to be reconciled." };
    registry.gauge(depth, () => this.queue.depth);
    const valid = { name: "config_valid", help: "Whether ConfigMap linkerd-cni-config holds a configuration." };
    registry.gauge(valid, () => (this.configMap.synced && this.configMap.config.kind === "valid" ? 1 : 0));
  }
}
