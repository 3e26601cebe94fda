import type { Look } from "./ownership";

/** After this the runtime is asked again whether it reads drop-ins. */
const UNREAD_MS = 60_000;
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
    this.unread = { runtime, at: now };
    return true;
  }

  /** Why pods that start now may not be chained: the runtime has not read the drop-in since it was written. */
  async whyUnread(
    { plan: { dropin, chain }, wanted: { runtime, stanza } }: Look,
    changed: boolean,
    now: number,
  ): Promise<string | undefined> {
    const written = dropin === undefined ? undefined : `${chain} ${JSON.stringify(stanza)}`;
    if (dropin === undefined || (!changed && this.read === written)) {
      this.read = written;
      return undefined;
    }
    this.misses = (await this.isRead(dropin.folder)) === false ? this.misses + 1 : 0;
    this.read = this.misses === 0 ? written : undefined;
    if (this.misses >= MOST_MISSES) this.unread = { runtime, at: now };
    return this.misses === 0
      ? undefined
      : `${chain} is in place, but the container runtime does not read ${dropin.folder}`;
  }
}
