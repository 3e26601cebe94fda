import type { Notice, Watchable } from "./watch";

/** The stored parts of objects, by key. */
export interface StoreOptions<T, V> {
  /** @default NAMESPACE/NAME, or NAME if there is no namespace */
  readonly key?: (object: T) => string;
  /** The stored part of an object, updated at every change. */
  readonly view: (object: T) => V;
  /** Called for every object that may have changed or was deleted. */
  readonly changed?: (key: string) => void;
  /** Called when all of a list has been read. */
  readonly synced?: () => void;
}

/** NAMESPACE/NAME, or NAME if there is no namespace. */
function keyOf({ metadata }: Watchable): string {
  const { name = "", namespace } = metadata ?? {};
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** Objects from a watch. */
export class Store<T extends Watchable, V = T> {
  private readonly views = new Map<string, V>();
  /** Keys not seen yet in the current list. */
  private missing = new Set<string>();
  private listed = false;

  constructor(private readonly options: StoreOptions<T, V>) {}

  /** Whether a list has been read to its end. */
  get synced(): boolean {
    return this.listed;
  }

  get size(): number {
    return this.views.size;
  }

  get(key: string): V | undefined {
    return this.views.get(key);
  }

  keys(): IterableIterator<string> {
    return this.views.keys();
  }

  values(): IterableIterator<V> {
    return this.views.values();
  }

  /** Applies an event of the watch. */
  apply(notice: Notice<T>): void {
    if (notice.type === "LISTING") this.missing = new Set(this.views.keys());
    else if (notice.type === "SYNCED") this.sweep();
    else if (notice.type === "DELETED") this.drop(this.keyOf(notice.object));
    else this.keep(notice.object);
  }

  /** Clears the store, which is not synced before the next list. */
  clear(): void {
    this.listed = false;
    for (const key of [...this.views.keys()]) this.drop(key);
  }

  private keyOf(object: T): string {
    return (this.options.key ?? keyOf)(object);
  }

  private sweep(): void {
    for (const key of this.missing) this.drop(key);
    this.missing.clear();
    this.listed = true;
    this.options.synced?.();
  }

  private drop(key: string): void {
    this.views.delete(key);
    this.options.changed?.(key);
  }

  private keep(object: T): void {
    const key = this.keyOf(object);
    this.missing.delete(key);
    this.views.set(key, this.options.view(object));
    this.options.changed?.(key);
  }
}
