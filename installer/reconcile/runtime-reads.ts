import type { Look } from "./ownership";

/** Interval after which the test whether the runtime reads drop-ins is repeated. */
const UNREAD_MS = 60_000;
/** Time after which a result seen beside another installer must be confirmed: that installer has ended by then. */
const CONFIRM_MS = 60_000;
/** Number of failures in a row before an existing drop-in counts as not read: the runtime may be starting. */
const MOST_MISSES = 3;

/**
 * Tests whether the container runtime reads the folder of our drop-in, which its version alone does not prove: the
 * runtime must open the folder when it is triggered to read its configuration. Only drop-ins need this test; an edited
 * list is where the runtime looks anyway.
 */
export class RuntimeReads {
  private unread: { readonly runtime: string | undefined; readonly at: number } | undefined;
  /** The drop-in that the runtime has read. */
  private read: string | undefined;
  /** When that must be confirmed. */
  private confirmAt = Number.POSITIVE_INFINITY;
  private misses = 0;

  /** @param isRead makes the runtime read again, and returns whether it opens the folder; undefined if unknown */
  constructor(private readonly isRead: (folder: string) => Promise<boolean | undefined>) {}

  /** Whether the runtime has failed to read drop-ins. */
  isUnread(runtime: string | undefined, now: number): boolean {
    const { unread } = this;
    return unread !== undefined && unread.runtime === runtime && now - unread.at < UNREAD_MS;
  }

  /** Whether the runtime does not read the folder, before a drop-in replaces the current chain. */
  async isRefused({ plan: { dropin }, wanted: { runtime } }: Look, now: number): Promise<boolean> {
    if (dropin === undefined || dropin.stands || (await this.isRead(dropin.folder)) !== false) return false;
    this.countAsUnread(runtime, now);
    return true;
  }

  /** Why pods that start now may not be chained: the runtime has not read the drop-in since it was written. */
  async whyUnread(
    { state: { journal }, plan: { dropin, chain }, wanted: { runtime, stanza } }: Look,
    changed: boolean,
    now: number,
  ): Promise<string | undefined> {
    const written = dropin === undefined ? undefined : `${chain} ${JSON.stringify(stanza)}`;
    const isKnown = !changed && this.read === written;
    if (dropin === undefined || (isKnown && now < this.confirmAt)) {
      this.read = written;
      return undefined;
    }
    if ((await this.isRead(dropin.folder)) !== false) {
      // A previous installer also opens the folder until it ends.
      const isAlone = isKnown || (journal?.former ?? []).length === 0;
      this.confirmAt = isAlone ? Number.POSITIVE_INFINITY : now + CONFIRM_MS;
      this.read = written;
      this.misses = 0;
      return undefined;
    }
    this.read = undefined;
    this.misses += 1;
    if (this.misses >= MOST_MISSES) this.countAsUnread(runtime, now);
    return `${chain} is in place, but the container runtime does not read ${dropin.folder}`;
  }

  private countAsUnread(runtime: string | undefined, now: number): void {
    this.unread = { runtime, at: now };
    this.misses = 0;
  }
}
