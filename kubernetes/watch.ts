import { reasonOf } from "../cni/errors";
import { isObject } from "../cni/json";
import { type HttpStream, linesOf, type StreamLimits } from "../system/http/client";
import { type BackoffPolicy, backoffMs } from "./backoff";
import { type List, query } from "./client";
import { ApiError, isTooLargeVersion, isTooManyRequests, statusOf } from "./errors";
import { ListReader } from "./list-reader";
import { type OpenStream, PAGE } from "./transport";
import type { ObjectMeta } from "./types";

/** An object from a list or a watch. */
export interface Watchable {
  readonly metadata?: ObjectMeta;
}

/**
 * Events of a watch. A list is LISTING, one LISTED for each object, and SYNCED, after which other objects no longer
 * exist. Between lists, changes arrive one by one.
 */
export type Notice<T> =
  | { readonly type: "LISTING" }
  | { readonly type: "SYNCED" }
  | { readonly type: "LISTED" | "ADDED" | "MODIFIED" | "DELETED"; readonly object: T };

/** The objects to watch. */
interface WatchSource {
  /** Path of the collection, without a query. */
  readonly path: string;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** Dependencies of a watch, time and randomness included. */
interface WatchDeps {
  readonly open: OpenStream;
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<void>;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Called with every error that ended a connection, the pause until the next one, and the answer. */
  readonly troubled: (problem: string, pauseMs: number, status?: number) => void;
  /** Ends the watch. */
  readonly signal: AbortSignal;
}

const LIST_DEADLINE_MS = 30_000;
const CONNECT_MS = 10_000;
/** Bookmarks arrive every minute, except while no object of the kind has changed since the watch began. */
const IDLE_MS = 90_000;
/** The server ends a watch after 4 to 8 minutes, so that connections spread over its replicas. */
const WATCH_SECONDS = 240;
/** A watch that lasted this long has worked. */
const LASTED_MS = 10_000;
/** Back-off between failed connections. */
export const WATCH_BACKOFF: BackoffPolicy = { firstMs: 500, longestMs: 30_000 };

const OK = 200;
const BAD_REQUEST = 400;
const NOT_FOUND = 404;
const GONE = 410;
/** List again: the server cannot read the resource version or no longer has it, or the resource no longer exists. */
const LIST_AGAIN: readonly number[] = [BAD_REQUEST, NOT_FOUND, GONE];

type WatchEvent<T> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK"; readonly object: T }
  | { readonly type: "ERROR"; readonly object: { readonly code?: number } };

/** Lists a collection and follows its changes until the signal is given. */
class Watch<T extends Watchable> {
  /** The resource version to continue from; undefined: list first. */
  private version: string | undefined;
  /**
   * Minimum resource version of a list from the server's cache: the last one seen. Undefined: read from the database,
   * because the server's versions have gone back.
   */
  private seen: string | undefined = "0";
  private failures = 0;
  /** When the server began to answer the current watch. */
  private openedAt: number | undefined;

  constructor(
    private readonly source: WatchSource,
    private readonly deps: WatchDeps,
  ) {}

  async *notices(): AsyncGenerator<Notice<T>> {
    const { now, signal } = this.deps;
    while (!signal.aborted) {
      this.openedAt = undefined;
      let problem: Error | undefined;
      try {
        yield* this.connection();
      } catch (error) {
        problem = this.problemOf(error);
      }
      // A slow failure does not count as working.
      if (this.openedAt !== undefined && now() - this.openedAt >= LASTED_MS) this.failures = 0;
      await this.pause(problem);
    }
  }

  /** Lists, if there is no version to continue from, and watches until the server ends the watch. */
  private async *connection(): AsyncGenerator<Notice<T>> {
    if (this.version === undefined) yield* this.list();
    yield* this.follow(this.version ?? "0");
  }

  private problemOf(error: unknown): Error {
    const status = statusOf(error) ?? 0;
    const isTooNew = isTooLargeVersion(error);
    // As after a restore of the server's database.
    if ((isTooNew || status === BAD_REQUEST) && this.version === undefined) this.seen = undefined;
    if (isTooNew || LIST_AGAIN.includes(status)) this.version = undefined;
    return error instanceof Error ? error : new Error(reasonOf(error));
  }

  private async pause(problem: Error | undefined): Promise<void> {
    const { random, signal, sleep, troubled } = this.deps;
    if (signal.aborted) return;
    this.failures += 1;
    const pause = backoffMs(WATCH_BACKOFF, this.failures, random());
    if (problem !== undefined) {
      troubled(problem.message, pause, statusOf(problem));
    }
    await sleep(pause);
  }

  private async *list(): AsyncGenerator<Notice<T>> {
    yield { type: "LISTING" };
    let next: string | undefined;
    let version: string | undefined;
    do {
      const reader = new ListReader<T>();
      const path = this.path(next ? { limit: String(PAGE), continue: next } : this.from());
      const limits = { connectMs: CONNECT_MS, deadlineMs: LIST_DEADLINE_MS, signal: this.deps.signal };
      for await (const part of await this.open("list", path, limits))
        for (const object of reader.read(part)) yield this.listed(object);
      const { items, metadata }: List<T> = reader.end();
      for (const object of items ?? []) yield this.listed(object);
      next = metadata?.continue;
      version = metadata?.resourceVersion;
    } while (next);
    this.version = version;
    this.seen = version;
    yield { type: "SYNCED" };
  }

  private listed(object: T): Notice<T> {
    if (!isObject(object)) throw new Error(`list of ${this.source.path}: an item is not an object`);
    return { type: "LISTED", object };
  }

  /**
   * Where the first page is read from. Most servers answer from their cache only without a limit, which they ignore for
   * any version (0), but not for one that is not older than another.
   */
  private from(): Record<string, string> {
    const { seen } = this;
    if (seen === undefined) return { limit: String(PAGE) };
    if (seen === "0") return { limit: String(PAGE), resourceVersion: seen };
    return { resourceVersion: seen, resourceVersionMatch: "NotOlderThan" };
  }

  /** Follows changes until the server ends the watch. */
  private async *follow(version: string): AsyncGenerator<Notice<T>> {
    const { now, random, signal } = this.deps;
    const timeoutSeconds = Math.round(WATCH_SECONDS * (1 + random()));
    const path = this.path({
      watch: "true",
      allowWatchBookmarks: "true",
      resourceVersion: version,
      timeoutSeconds: String(timeoutSeconds),
    });
    const parts = await this.open("watch", path, { connectMs: CONNECT_MS, idleMs: IDLE_MS, signal });
    this.openedAt = now();
    for await (const line of linesOf(parts)) {
      const notice = this.read(line);
      if (notice !== undefined) yield notice;
    }
  }

  /** The body of an answer. @throws ApiError if it is a refusal */
  private async open(verb: string, path: string, limits: StreamLimits): Promise<HttpStream["parts"]> {
    const { status, parts } = await this.deps.open(path, limits);
    if (status === OK) return parts;
    // Leaving the loop ends the connection.
    for await (const body of linesOf(parts)) throw this.refusal(verb, status, body);
    throw this.refusal(verb, status, "");
  }

  private read(line: string): Notice<T> | undefined {
    if (line === "") return undefined;
    const event = JSON.parse(line) as WatchEvent<T>;
    if (event.type === "ERROR") {
      const refusal = this.refusal("watch", event.object.code ?? 0, JSON.stringify(event.object));
      // Otherwise the same watch might end with the same error each time.
      if (!isTooManyRequests(refusal)) this.version = undefined;
      throw refusal;
    }
    const { type, object } = event;
    this.version = object.metadata?.resourceVersion ?? this.version;
    this.seen = this.version;
    return type === "BOOKMARK" ? undefined : { type, object };
  }

  private refusal(verb: string, status: number, body: string): ApiError {
    return new ApiError(`${verb} of ${this.source.path}`, { status, body });
  }

  private path(more: Readonly<Record<string, string>>): string {
    const { path, labelSelector, fieldSelector } = this.source;
    return `${path}${query({ labelSelector, fieldSelector, ...more })}`;
  }
}

/** Lists a collection, then follows its changes; reconnects after errors, and lists again if necessary. */
export function watch<T extends Watchable>(source: WatchSource, deps: WatchDeps): AsyncGenerator<Notice<T>> {
  return new Watch<T>(source, deps).notices();
}
