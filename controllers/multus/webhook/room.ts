/** What one request holds of a room. */
export interface Share {
  /** Holds so many bytes more. @returns whether they fit */
  grow(bytes: number): boolean;
  /** Gives everything back; it does not grow any more. */
  end(): void;
}

/** Bytes that all requests together may hold at once. */
export class Room {
  constructor(private left: number) {}

  share(): Share {
    let [held, ended] = [0, false];
    return {
      grow: (bytes) => {
        if (ended || bytes > this.left) return false;
        held += bytes;
        this.left -= bytes;
        return true;
      },
      end: () => {
        this.left += held;
        [held, ended] = [0, true];
      },
    };
  }
}
