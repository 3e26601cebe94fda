/** The writes of a text to one namespace. */
interface Writes {
  readonly config: string;
  /** Number in a row. */
  readonly count: number;
  /** Time of the last one. */
  readonly at: number;
  /** Whether the next one is already delayed. */
  isDeferred: boolean;
}

/** Number of immediate writes in a row. */
const FREE = 3;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** A definition unchanged for this long is not in conflict. */
const FORGET_MS = 300_000;

/**
 * Slows down corrections of a definition that another client keeps undoing. Times are milliseconds of a monotonic
 * clock.
 */
export class ConflictBackoff {
  private readonly writes = new Map<string, Writes>();

  /** Milliseconds to wait before this text is written there again; 0: now. */
  wait(namespace: string, config: string, now: number): number {
    const { count, at } = this.find(namespace, config, now);
    return count < FREE ? 0 : Math.max(0, at + Math.min(FIRST_PAUSE_MS * 2 ** (count - FREE), LONGEST_PAUSE_MS) - now);
  }

  wrote(namespace: string, config: string, now: number): void {
    const { count } = this.find(namespace, config, now);
    // The latest is last.
    this.writes.delete(namespace);
    this.writes.set(namespace, { config, count: count + 1, at: now, isDeferred: false });
    for (const [each, { at }] of this.writes) {
      if (now - at < FORGET_MS) break;
      this.writes.delete(each);
    }
  }

  /** Notes that the next write is delayed. @returns false if that was already noted since the last write */
  defer(namespace: string): boolean {
    const found = this.writes.get(namespace);
    if (found === undefined || found.isDeferred) return false;
    found.isDeferred = true;
    return true;
  }

  /** Number of namespaces with state. */
  get size(): number {
    return this.writes.size;
  }

  forget(namespace: string): void {
    this.writes.delete(namespace);
  }

  private find(namespace: string, config: string, now: number): Writes {
    const found = this.writes.get(namespace);
    const fresh = found !== undefined && found.config === config && now - found.at < FORGET_MS;
    return fresh ? found : { config, count: 0, at: now, isDeferred: false };
  }
}
