import { Label, MULTUS_NAME, NetworkDefinition } from "../../../cni/contract";
import { reasonOf } from "../../../cni/errors";
import type { KubernetesClient } from "../../../kubernetes/client";
import { isForbidden, isNotFound, statusOf } from "../../../kubernetes/errors";
import { EventRecorder, type EventSpec, type ObjectReference } from "../../../kubernetes/events";
import { resources } from "../../../kubernetes/resources";
import type { Clock } from "../../../process/clock";
import type { Log } from "../../../process/log";
import type { Metrics } from "../metrics";
import { type Namespace, namespaceOf } from "../namespace";
import { DEFINITIONS, type Definition, type DefinitionObject } from "./definition";

interface DefinitionWriterDeps {
  /** Its deadline is shorter than the time between a leader's last renewal and its successor's first write. */
  readonly client: KubernetesClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** This pod's name. */
  readonly podName: string;
}

/** The object has changed since it was read: decide again. Not a failure. */
export class Stale extends Error {}

const CONFLICT = 409;

function isStale(error: unknown): boolean {
  return statusOf(error) === CONFLICT || (isForbidden(error) && error.causes.includes("NamespaceTerminating"));
}

/** Writes definitions and Events, and verifies the reasons of a deletion. */
export class DefinitionWriter {
  private readonly recorder: EventRecorder;

  constructor(private readonly deps: DefinitionWriterDeps) {
    this.recorder = new EventRecorder({ controller: MULTUS_NAME, instance: deps.podName }, deps);
  }

  /**
   * Creates a definition if none exists. @param leads checked before the write, since another process may lead by then
   * @throws Stale if one exists by now, or another process leads; what the request throws
   */
  async create(namespace: string, config: string, leads = () => true): Promise<void> {
    const { client, log, metrics } = this.deps;
    const ref = { namespace, name: NetworkDefinition.name };
    // The watch may be behind: a definition that exists may be ours, even if others have written to it.
    const found = await this.attempt("apply", () => client.find(DEFINITIONS, ref));
    if (found !== undefined) throw new Stale("apply: there is one already");
    if (!leads()) throw new Stale("apply: this process does not lead any more");
    const { object, created } = await this.apply(this.ours(namespace, config));
    if (!created) await this.retreat(namespace, object);
    metrics.applies.inc();
    log.info("created the definition", { namespace });
  }

  /** Corrects exactly the definition that was read. @throws Stale, or what the request throws */
  async update(namespace: string, { uid, resourceVersion }: Definition, config: string): Promise<void> {
    const { metadata, spec } = this.ours(namespace, config);
    await this.apply({ metadata: { ...metadata, uid, resourceVersion }, spec }, true);
    this.deps.metrics.applies.inc();
    this.deps.log.info("corrected the definition", { namespace });
  }

  /** The current namespace; undefined if it does not exist. @throws what the request throws */
  async namespace(name: string): Promise<Namespace | undefined> {
    const found = await this.attempt("delete", () => this.deps.client.find(resources.namespaces, { name }));
    return found === undefined ? undefined : namespaceOf(found);
  }

  /** Deletes exactly the definition that was read. @throws Stale, or what the request throws */
  async delete(namespace: string, { uid, resourceVersion }: Definition): Promise<void> {
    const { client, log, metrics } = this.deps;
    const deleted = await this.attempt("delete", async () => {
      try {
        const options = { preconditions: { uid, resourceVersion } };
        await client.delete(DEFINITIONS, { namespace, name: NetworkDefinition.name }, options);
        return true;
      } catch (error) {
        if (isNotFound(error)) return false;
        throw error;
      }
    });
    if (!deleted) return;
    metrics.deletes.inc();
    log.info("deleted the definition", { namespace });
  }

  /** Publishes an Event, once per cause. @throws what the request throws */
  async publish(regarding: ObjectReference, spec: EventSpec, suffix: string): Promise<void> {
    await this.attempt("event", () => this.recorder.record(regarding, spec, suffix));
  }

  /** The applied object: we own only these fields. */
  private ours(namespace: string, config: string) {
    return {
      metadata: { namespace, name: NetworkDefinition.name, labels: { [Label.managedBy]: MULTUS_NAME } },
      spec: { config },
    };
  }

  /** Another client has just created one without a conflict: releases our fields in it. @throws Stale */
  private async retreat(namespace: string, { metadata }: DefinitionObject): Promise<void> {
    if (metadata?.managedFields?.every(({ manager }) => manager === MULTUS_NAME) === true) return;
    await this.apply({ metadata: { namespace, name: NetworkDefinition.name, uid: metadata?.uid ?? "" } });
    throw new Stale("apply: another owner's definition already exists");
  }

  private apply(
    definition: DefinitionObject & { readonly metadata: { readonly namespace: string; readonly name: string } },
    force = false,
  ) {
    return this.attempt("apply", () =>
      this.deps.client.apply(DEFINITIONS, definition, { fieldManager: MULTUS_NAME, force }),
    );
  }

  private async attempt<T>(operation: "apply" | "delete" | "event", request: () => Promise<T>): Promise<T> {
    try {
      return await request();
    } catch (error) {
      if (isStale(error)) throw new Stale(reasonOf(error), { cause: error });
      this.deps.metrics.errors.inc({ operation });
      throw error;
    }
  }
}
