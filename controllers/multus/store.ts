import type { Notice, Watchable } from "../../kubernetes/watch";

/** What is kept of objects, and by which key. */
export interface Keeping<T, V> {
  readonly key: (object: T) => string;
  /** The part of an object that is kept; it is made anew at every change. */
  readonly view: (object: T) => V;
  /** Told about every object that may have changed, or that is gone. */
  readonly changed: (key: string) => void;
  /** Told when all of a list has been read. */
  readonly synced?: () => void;
}

/** Objects as a watch tells of them. */
export class Store<T extends Watchable, V> {
  private readonly views = new Map<string, V>();
  /** Those that a list under way has not shown yet. */
  private missing = new Set<string>();
  private listed = false;

  constructor(private readonly keeping: Keeping<T, V>) {}

  /** Whether a list has been read to its end. */
  get synced(): boolean {
    return this.listed;
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

  /** Takes in what the watch tells. */
  apply(notice: Notice<T>): void {
    if (notice.type === "LISTING") this.missing = new Set(this.views.keys());
    else if (notice.type === "SYNCED") this.sweep();
    else if (notice.type === "DELETED") this.drop(this.keeping.key(notice.object));
    else this.keep(notice.object);
  }

  /** Forgets everything, and is not synced before the next list. */
  clear(): void {
    this.listed = false;
    for (const key of [...this.views.keys()]) this.drop(key);
  }

  private sweep(): void {
    for (const key of this.missing) this.drop(key);
    this.missing.clear();
    this.listed = true;
    this.keeping.synced?.();
  }

  private drop(key: string): void {
    this.views.delete(key);
    this.keeping.changed(key);
  }

  private keep(object: T): void {
    const key = this.keeping.key(object);
    this.missing.delete(key);
    this.views.set(key, this.keeping.view(object));
    this.keeping.changed(key);
  }
}
