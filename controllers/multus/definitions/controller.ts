import { ApiUnreachable } from "../../../kubernetes/client";
import { type InformerTools, inform } from "../informer";
import type { Instruments } from "../instruments";
import type { Leadership } from "../leader/elector";
import type { Namespaces } from "../namespaces";
import { WorkQueue } from "../queue";
import type { Settings } from "../settings";
import { CONFIG_MAP, type ConfigMapObject } from "./config";
import { ConfigMapSource } from "./config-map";
import { Contests } from "./contests";
import { countDefinitions } from "./count";
import { API_VERSION, DEFINITION_NAME, DEFINITIONS, type Definition, type DefinitionObject, KIND } from "./definition";
import { Definitions } from "./definitions";
import { Limiter } from "./limiter";
import { type Plan, plan } from "./plan";
import { configInvalid, foreignDefinition } from "./tidings";
import { Stale, type Writer } from "./writer";

interface Tools {
  readonly settings: Settings;
  readonly namespaces: Namespaces;
  readonly leadership: Leadership;
  readonly writer: Writer;
  readonly informing: InformerTools;
  readonly instruments: Instruments;
}

/** In the queue, beside the namespaces' names. */
const CONFIG_KEY = ":config";
/** Requests under way at once. */
const WORKERS = 4;
const RESYNC_MS = 600_000;

/** Puts the definition of every namespace right, while this process leads. */
export class DefinitionController {
  private readonly definitions: Definitions;
  private readonly configMap: ConfigMapSource;
  private readonly queue: WorkQueue;
  private readonly limiter: Limiter;
  private readonly contests = new Contests();
  /** UIDs of the foreign definitions that an Event was published about, by namespace. */
  private readonly told = new Map<string, string>();

  constructor(private readonly tools: Tools) {
    const { informing, settings } = tools;
    const { clock, log, signal } = informing;
    this.limiter = new Limiter(settings.rate, clock, signal);
    const failed = (key: string, error: unknown, attempt: number) => this.failed(key, error, attempt);
    this.queue = new WorkQueue((key) => this.reconcile(key), { clock, signal, failed });
    const changed = (namespace: string) => this.changed(namespace);
    this.definitions = new Definitions({ log, changed, synced: () => this.everything() });
    this.configMap = new ConfigMapSource({
      namespace: settings.cniNamespace,
      kubeconfig: settings.cniKubeconfig,
      changed: () => this.configChanged(),
    });
    this.measure();
  }

  /** A namespace may have changed. */
  changed(namespace: string): void {
    this.queue.add(namespace);
  }

  /** Anything may have changed, or it can be acted upon only now. */
  everything(): void {
    if (!this.active) return;
    this.queue.add(CONFIG_KEY);
    for (const namespace of this.tools.namespaces.names()) this.queue.add(namespace);
  }

  /** Writes until the signal is given; what is being written then is finished. */
  async write(): Promise<void> {
    await this.queue.run(WORKERS);
  }

  /** Learns what there is to write, until the signal is given. */
  async follow(): Promise<void> {
    const { informing, settings } = this.tools;
    const configMaps = `/api/v1/namespaces/${settings.cniNamespace}/configmaps`;
    await Promise.all([
      this.resync(),
      inform<DefinitionObject>(
        {
          resource: "network-attachment-definitions",
          source: DEFINITIONS,
          take: (notice) => this.definitions.apply(notice),
          unknown: () => this.definitions.unknown(),
        },
        informing,
      ),
      inform<ConfigMapObject>(
        {
          resource: "configmaps",
          source: { path: configMaps, fieldSelector: `metadata.name=${CONFIG_MAP}` },
          take: (notice) => this.configMap.apply(notice),
        },
        informing,
      ),
    ]);
  }

  /** Whether enough is known to decide, and this process is the one to act. */
  private get active(): boolean {
    const { informing, leadership, namespaces } = this.tools;
    const known = namespaces.synced && this.definitions.synced && this.configMap.synced;
    return known && leadership.leading && !informing.signal.aborted;
  }

  private async resync(): Promise<void> {
    const { clock, signal } = this.tools.informing;
    while (!signal.aborted) {
      await clock.sleep(RESYNC_MS * (0.9 + 0.2 * clock.random()), signal);
      this.everything();
    }
  }

  private configChanged(): void {
    const { config } = this.configMap;
    if (config.kind === "invalid") this.tools.informing.log.warn(config.problem);
    else this.tools.informing.log.info("read the configuration of the definitions");
    this.everything();
  }

  private async reconcile(key: string): Promise<void> {
    const { clock } = this.tools.informing;
    if (!this.active) return;
    if (key === CONFIG_KEY) return this.tellConfig();
    const first = this.planFor(key);
    if (first.kind === "leave" || this.isContested(key, first)) return;
    await this.limiter.turn();
    // Much may have happened while it waited for its turn.
    if (!this.active) return;
    const start = clock.now();
    await this.carryOut(key, this.planFor(key));
    this.tools.instruments.reconcileSeconds.observe((clock.now() - start) / 1_000);
  }

  /** Whether somebody else undoes this again and again: then it waits. */
  private isContested(namespace: string, planned: Plan): boolean {
    const { informing, instruments } = this.tools;
    if (planned.kind !== "create" && planned.kind !== "update") return false;
    const pause = this.contests.wait(namespace, planned.config, informing.clock.now());
    if (pause === 0) return false;
    if (this.queue.addLater(namespace, pause)) {
      instruments.contests.inc();
      const seconds = Math.ceil(pause / 1_000);
      informing.log.warn(`somebody changes the definition again and again; put right in ${seconds} s`, { namespace });
    }
    return true;
  }

  private planFor(name: string): Plan {
    const { namespaces, settings } = this.tools;
    const { config } = this.configMap;
    const planned = plan({
      namespace: namespaces.get(name),
      definition: this.definitions.get(name),
      config: config.kind === "valid" ? config.text : undefined,
      linkerdNamespace: settings.linkerdNamespace,
    });
    const known = planned.kind === "foreign" && this.told.get(name) === planned.definition.uid;
    return known ? { kind: "leave" } : planned;
  }

  private async carryOut(namespace: string, planned: Plan): Promise<void> {
    const { informing, writer } = this.tools;
    if (planned.kind === "foreign") return this.tellForeign(namespace, planned.definition.uid);
    if (planned.kind === "delete") return this.remove(namespace, planned.definition);
    if (planned.kind === "create") await writer.create(namespace, planned.config, () => this.active);
    else if (planned.kind === "update") await writer.update(namespace, planned.definition, planned.config);
    else return;
    this.contests.wrote(namespace, planned.config, informing.clock.now());
  }

  /** A watch may be behind, and pods whose definition is gone do not start: the API server itself is asked first. */
  private async remove(name: string, definition: Definition): Promise<void> {
    const { informing, settings, writer } = this.tools;
    const { linkerdNamespace } = settings;
    const namespace = await writer.namespace(name);
    // Another may lead by the time of the answer.
    if (!this.active) return;
    if (plan({ namespace, definition, config: undefined, linkerdNamespace }).kind !== "delete") {
      informing.log.debug("keeps the definition: the namespace is not what the watch said", { namespace: name });
      return;
    }
    this.contests.forget(name);
    await writer.delete(name, definition);
  }

  private async tellForeign(namespace: string, uid: string): Promise<void> {
    this.tools.informing.log.warn(foreignDefinition.note, { namespace });
    const regarding = { apiVersion: API_VERSION, kind: KIND, namespace, name: DEFINITION_NAME, uid };
    await this.tools.writer.publish(regarding, foreignDefinition, `foreign-${uid}`);
    this.told.set(namespace, uid);
  }

  private async tellConfig(): Promise<void> {
    const { config, digest, regarding } = this.configMap;
    if (config.kind === "valid") return;
    await this.tools.writer.publish(regarding, configInvalid(config.problem), `invalid-${digest}`);
  }

  private failed(key: string, error: unknown, attempt: number): void {
    const { log } = this.tools.informing;
    const { message, cause } = error as Error;
    // While the API server does not answer, the watches say so; afterwards the first failure is what matters.
    const quiet = error instanceof Stale || cause instanceof ApiUnreachable || attempt > 1;
    const about = key === CONFIG_KEY ? {} : { namespace: key };
    log[quiet ? "debug" : "warn"](`${message}; will be tried again`, { ...about, attempt });
  }

  private measure(): void {
    const { instruments, namespaces, settings } = this.tools;
    const { linkerdNamespace } = settings;
    const definition = (name: string) => this.definitions.get(name);
    instruments.states(
      "definitions",
      "Namespaces by their NetworkAttachmentDefinition: it is wanted, and then ours or foreign.",
      () => countDefinitions({ namespaces: namespaces.all(), definition, linkerdNamespace }),
    );
    instruments.gauge("queue_depth", "Namespaces that wait for being put right.", () => this.queue.depth);
    instruments.gauge("config_valid", "Whether ConfigMap linkerd-cni-config holds a configuration.", () =>
      this.configMap.synced && this.configMap.config.kind === "valid" ? 1 : 0,
    );
  }
}
