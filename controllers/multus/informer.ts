import type { Log } from "../../cni/log";
import type { ApiServer, Transport } from "../../kubernetes/client";
import { type Notice, type Watchable, type WatchSource, watch } from "../../kubernetes/watch";
import type { Clock } from "../clock";

/** What every informer works with. */
export interface InformerTools {
  readonly server: () => ApiServer;
  readonly send: Transport;
  readonly clock: Clock;
  readonly log: Log;
  /** Counts a connection that ended in an error. */
  readonly failed: (resource: string) => void;
  readonly signal: AbortSignal;
}

export interface Informed<T> {
  /** What is watched, in the plural, for logs and metrics. */
  readonly resource: string;
  readonly source: WatchSource;
  readonly take: (notice: Notice<T>) => void;
  /** The API server does not know the resource; it is asked again later. Told at every attempt. */
  readonly unknown?: () => void;
}

const NOT_FOUND = 404;

/** Lists and watches a resource until the signal is given. */
export async function inform<T extends Watchable>(informed: Informed<T>, tools: InformerTools): Promise<void> {
  const { server, send, clock, log, failed, signal } = tools;
  const troubled = (problem: string, pauseMs: number, status?: number) => {
    if (status === NOT_FOUND && informed.unknown !== undefined) return informed.unknown();
    failed(informed.resource);
    log.warn(`${problem}; next attempt in ${(pauseMs / 1000).toFixed(1)} s`, { resource: informed.resource });
  };
  const { now, random } = clock;
  const sleep = (ms: number) => clock.sleep(ms, signal);
  const notices = watch<T>(informed.source, { server, send, now, sleep, random, troubled, signal });
  for await (const notice of notices) informed.take(notice);
}
