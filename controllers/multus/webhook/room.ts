/** What one request holds of a room. */
export interface Share {
  /** Holds so many bytes more. @returns whether they fit */
  grow(bytes: number): boolean;
  /** Gives everything back; it does not grow any more. */
  end(): void;
}

/** Bytes that all requests together may hold at once; a small one always fits. */
export class Room {
  /** @param free what each request may hold besides, in bytes */
  constructor(
    private left: number,
    private readonly free: number,
  ) {}

  share(): Share {
    let [held, ended] = [0, false];
    const counted = (bytes: number) => Math.max(0, bytes - this.free);
    return {
      grow: (bytes) => {
        const more = counted(held + bytes) - counted(held);
        if (ended || more > this.left) return false;
        held += bytes;
        this.left -= more;
        return true;
      },
      end: () => {
        this.left += counted(held);
        [held, ended] = [0, true];
      },
    };
  }
}
