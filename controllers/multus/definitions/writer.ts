import type { Log } from "../../../cni/log";
import type { ApiRequest, ApiResponse, Transport } from "../../../kubernetes/client";
import type { NamespaceObject } from "../../../kubernetes/types";
import type { Clock } from "../../clock";
import { eventAbout, eventsPath, type Regarding, type Tiding } from "../../events";
import type { Instruments } from "../instruments";
import { type Namespace, namespaceOf } from "../namespaces";
import {
  type Definition,
  type DefinitionObject,
  definitionPath,
  definitionToApply,
  nothingToApply,
  OWNER,
} from "./definition";

interface Tools {
  readonly send: Transport;
  readonly clock: Clock;
  readonly log: Log;
  readonly instruments: Instruments;
  /** This pod's name. */
  readonly reporter: string;
}

/** A write that was refused, or got no answer. */
export class WriteFailed extends Error {}

/** What was read before is not what is there: decide again. Nothing is wrong. */
export class Stale extends WriteFailed {}

/** Less than the time between a leader's last renewal and its successor's beginning. */
const DEADLINE_MS = 5_000;
const CREATED = 201;
const NOT_FOUND = 404;
const CONFLICT = 409;
const succeeded = ({ status }: ApiResponse) => status >= 200 && status < 300;
const endsHere = ({ status, body }: ApiResponse) => status === 403 && body.includes('"NamespaceTerminating"');

/** Writes definitions and Events, and makes sure of what a deletion rests on. */
export class Writer {
  constructor(private readonly tools: Tools) {}

  /** Creates a definition, or fails where there is one by now, whosever it is, or another leads. @throws WriteFailed */
  async create(namespace: string, config: string, leads = () => true): Promise<void> {
    await this.requireNone(namespace);
    if (!leads()) throw new Stale("apply: not to be written any more");
    const { status, body } = await this.apply(namespace, definitionToApply(config), false);
    if (status !== CREATED) await this.retreat(namespace, JSON.parse(body) as DefinitionObject);
    this.tools.instruments.applies.inc();
    this.tools.log.info("created the definition", { namespace });
  }

  /** Puts right the definition that was read, and no other. @throws WriteFailed */
  async update(namespace: string, definition: Definition, config: string): Promise<void> {
    await this.apply(namespace, definitionToApply(config, definition), true);
    this.tools.instruments.applies.inc();
    this.tools.log.info("put the definition right", { namespace });
  }

  /** A namespace as it is now; undefined where there is none. @throws WriteFailed */
  async namespace(name: string): Promise<Namespace | undefined> {
    const response = await this.send("delete", { path: `/api/v1/namespaces/${name}` });
    if (response.status === NOT_FOUND) return undefined;
    this.require("delete", response);
    return namespaceOf(JSON.parse(response.body) as NamespaceObject);
  }

  /** Deletes the definition that was read, and no other. @throws WriteFailed */
  async delete(namespace: string, { uid, resourceVersion }: Definition): Promise<void> {
    const body = { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid, resourceVersion } };
    const response = await this.send("delete", { method: "DELETE", path: definitionPath(namespace), body });
    if (response.status === NOT_FOUND) return;
    this.require("delete", response);
    this.tools.instruments.deletes.inc();
    this.tools.log.info("deleted the definition", { namespace });
  }

  /** Publishes an Event once: `suffix` tells the occasion. @throws WriteFailed */
  async publish(regarding: Regarding, tiding: Tiding, suffix: string): Promise<void> {
    const { clock, reporter } = this.tools;
    const body = eventAbout(regarding, tiding, { controller: OWNER, instance: reporter, date: clock.date() }, suffix);
    const response = await this.send("event", { method: "POST", path: eventsPath(regarding.namespace), body });
    if (response.status !== CONFLICT) this.require("event", response);
  }

  /** The watch may be behind: one that is there already may be our own, whoever else has written to it. @throws Stale */
  private async requireNone(namespace: string): Promise<void> {
    const response = await this.send("apply", { path: definitionPath(namespace) });
    if (response.status === NOT_FOUND) return;
    this.require("apply", response);
    throw new Stale("apply: there is one already");
  }

  /** One was made in this moment that does not contradict ours: somebody else's gets no field of ours. @throws Stale */
  private async retreat(namespace: string, { metadata }: DefinitionObject): Promise<void> {
    if (metadata?.managedFields?.every(({ manager }) => manager === OWNER) === true) return;
    await this.apply(namespace, nothingToApply(metadata?.uid ?? ""), false);
    throw new Stale("apply: there is one already that is somebody else's");
  }

  private async apply(namespace: string, body: object, force: boolean): Promise<ApiResponse> {
    const query = new URLSearchParams({ fieldManager: OWNER, force: String(force) });
    const response = await this.send("apply", {
      method: "PATCH",
      path: `${definitionPath(namespace)}?${query}`,
      contentType: "application/apply-patch+yaml",
      body,
    });
    this.require("apply", response);
    return response;
  }

  private async send(operation: string, call: Omit<ApiRequest, "deadlineMs">): Promise<ApiResponse> {
    try {
      return await this.tools.send({ ...call, deadlineMs: DEADLINE_MS });
    } catch (error) {
      this.tools.instruments.errors.inc({ operation });
      throw new WriteFailed((error as Error).message, { cause: error });
    }
  }

  private require(operation: string, response: ApiResponse): void {
    if (succeeded(response)) return;
    const problem = `${operation}: ${response.status}: ${response.body.slice(0, 300)}`;
    if (response.status === CONFLICT || endsHere(response)) throw new Stale(problem);
    this.tools.instruments.errors.inc({ operation });
    throw new WriteFailed(problem);
  }
}
