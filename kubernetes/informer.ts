import type { Clock } from "../process/clock";
import type { Log } from "../process/log";
import { pathOf, type Resource } from "./resources";
import { Store, type StoreOptions } from "./store";
import type { OpenStream } from "./transport";
import { type Notice, type Watchable, watch } from "./watch";

/** Dependencies of every informer. */
export interface InformerDeps {
  readonly open: OpenStream;
  readonly clock: Clock;
  readonly log: Log;
  /** Counts a connection that ended in an error. @param resource in the plural */
  readonly failed: (resource: string) => void;
  /** Ends the informer. */
  readonly signal: AbortSignal;
}

/** The objects to watch. */
interface Selection<T> {
  readonly resource: Resource<T>;
  /** @default every namespace */
  readonly namespace?: string;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Called when the API server does not know the resource; the request is repeated later. */
  readonly unknown?: () => void;
}

const NOT_FOUND = 404;

/** Lists and watches objects until the signal is given, and passes every event to `take`. */
export async function inform<T extends Watchable>(
  selection: Selection<T> & { readonly take: (notice: Notice<T>) => void },
  deps: InformerDeps,
): Promise<void> {
  const { resource, namespace, labelSelector, fieldSelector, unknown, take } = selection;
  const { open, clock, log, failed, signal } = deps;
  const source = { path: pathOf(resource, { namespace }), labelSelector, fieldSelector };
  const troubled = (problem: string, pauseMs: number, status?: number) => {
    if (status === NOT_FOUND && unknown !== undefined) return unknown();
    failed(resource.plural);
    log.warn(`${problem}; next attempt in ${(pauseMs / 1000).toFixed(1)} s`, { resource: resource.plural });
  };
  const { now, random } = clock;
  const sleep = (ms: number) => clock.sleep(ms, signal);
  for await (const notice of watch<T>(source, { open, now, sleep, random, troubled, signal })) take(notice);
}

/** Keeps a store of objects up to date by a list and a watch. */
export class Informer<T extends Watchable, V = T> {
  readonly store: Store<T, V>;

  constructor(
    private readonly options: Selection<T> & StoreOptions<T, V>,
    private readonly deps: InformerDeps,
  ) {
    this.store = new Store(options);
  }

  /** Runs until the signal is given. */
  run(): Promise<void> {
    return inform({ ...this.options, take: (notice: Notice<T>) => this.store.apply(notice) }, this.deps);
  }
}
