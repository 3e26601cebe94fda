/** Puts a brake on repairs that somebody else undoes again and again. */

interface Repairs {
  readonly config: string;
  /** How many in a row. */
  readonly count: number;
  readonly at: number;
}

/** So many in a row are done at once. */
const FREE = 3;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** What stayed right for so long was not contested. */
const FORGET_MS = 300_000;

/** The same text written to the same namespace, again and again; times are milliseconds of a clock that never goes back. */
export class Contests {
  private readonly repairs = new Map<string, Repairs>();

  /** Milliseconds to wait before this text is written there once more; 0: now. */
  wait(namespace: string, config: string, now: number): number {
    const { count, at } = this.find(namespace, config, now);
    return count < FREE ? 0 : Math.max(0, at + Math.min(FIRST_PAUSE_MS * 2 ** (count - FREE), LONGEST_PAUSE_MS) - now);
  }

  wrote(namespace: string, config: string, now: number): void {
    const { count } = this.find(namespace, config, now);
    // The latest stands last.
    this.repairs.delete(namespace);
    this.repairs.set(namespace, { config, count: count + 1, at: now });
    for (const [each, { at }] of this.repairs) {
      if (now - at < FORGET_MS) break;
      this.repairs.delete(each);
    }
  }

  /** Of how many namespaces something is kept. */
  get size(): number {
    return this.repairs.size;
  }

  forget(namespace: string): void {
    this.repairs.delete(namespace);
  }

  private find(namespace: string, config: string, now: number): Repairs {
    const found = this.repairs.get(namespace);
    const fresh = found !== undefined && found.config === config && now - found.at < FORGET_MS;
    return fresh ? found : { config, count: 0, at: now };
  }
}
