/** Maximum idle connections of any age, which need about 12 KiB each, and 45 KiB with TLS. */
const MOST_AT_ALL = 2048;
/**
 * Grace period of every client in milliseconds: many connections may be accepted before the first bytes of one are
 * read, and clients that reconnect at once must not fill the accept queue.
 */
const GRACE_MS = 2_000;

/** Idle connections in order of their waiting time. The one that has waited longest is closed for a new one. */
export class Waiting<T> {
  private readonly since = new Map<T, number>();

  /** @param most maximum connections, including active ones @param end ends a connection */
  constructor(
    private readonly most: number,
    private readonly end: (each: T) => void,
  ) {}

  get size(): number {
    return this.since.size;
  }

  add(each: T): void {
    this.since.delete(each);
    this.since.set(each, performance.now());
  }

  delete(each: T): void {
    this.since.delete(each);
  }

  /** Ends those that have waited for so many milliseconds. @returns milliseconds until that is due again; undefined: none waits */
  expire(milliseconds: number): number | undefined {
    const now = performance.now();
    for (const [each, since] of this.since) {
      if (now - since < milliseconds) return since + milliseconds - now;
      this.since.delete(each);
      this.end(each);
    }
    return undefined;
  }

  /** Ends the half that has waited longest, at least one. @returns whether there was one */
  halve(): boolean {
    const half = [...this.since.keys()].slice(0, Math.ceil(this.size / 2));
    for (const each of half) {
      this.since.delete(each);
      this.end(each);
    }
    return half.length > 0;
  }

  /** Ends all. */
  clear(): void {
    for (const each of this.since.keys()) this.end(each);
    this.since.clear();
  }

  /**
   * Ends up to two connections, so that their number decreases after a rush. @param open current connections, idle or
   * not @returns whether there is room for one more
   */
  makeRoom(open: number): boolean {
    if (open >= this.most && this.size === 0) return false;
    for (let left = open; left >= this.most && left > open - 2; left--) {
      const [oldest] = this.since;
      if (oldest === undefined || (open < MOST_AT_ALL && performance.now() - oldest[1] < GRACE_MS)) break;
      this.since.delete(oldest[0]);
      this.end(oldest[0]);
    }
    return true;
  }
}
