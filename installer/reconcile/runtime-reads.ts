import type { Look } from "./ownership";

/** After this the runtime is asked again whether it reads drop-ins. */
const UNREAD_MS = 60_000;
/** After this, what was seen beside another installer has to be seen again: then that one has ended. */
const CONFIRM_MS = 60_000;
/** How often in a row the runtime may not read a drop-in that is in place, before that counts: it may be starting. */
const MOST_MISSES = 3;

/**
 * Sees whether the container runtime reads the folder of our drop-in, which its version alone does not prove: it has to
 * open the folder when it is made to read its configuration again. This serves drop-ins alone; an edited list is where the
 * runtime looks anyway.
 */
export class RuntimeReads {
  private unread: { readonly runtime: string | undefined; readonly at: number } | undefined;
  /** The drop-in that was seen to be read. */
  private read: string | undefined;
  /** When that has to be seen once more. */
  private confirmAt = Number.POSITIVE_INFINITY;
  private misses = 0;

  /** @param isRead makes the runtime read again, and tells whether it opens the folder; undefined if that cannot be seen */
  constructor(private readonly isRead: (folder: string) => Promise<boolean | undefined>) {}

  /** Whether the runtime was seen not to read drop-ins. */
  isUnread(runtime: string | undefined, now: number): boolean {
    const { unread } = this;
    return unread !== undefined && unread.runtime === runtime && now - unread.at < UNREAD_MS;
  }

  /** Before a drop-in takes the place of what is in force: whether the runtime does not read it. */
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
      // An installer that had the node before looks at the folder, too, until it ends.
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
