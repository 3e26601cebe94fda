/** A chain as a server sends it, what a client trusts and asks for, and what Go's verifier says (test/tools/certificates). */
export interface Chain {
  readonly name: string;
  /** PEM. */
  readonly roots: string;
  readonly chain: string;
  readonly trusted: boolean;
  /** Go cannot read one of the server's certificates. */
  readonly unreadable: boolean;
  /** Why Go does not trust it. */
  readonly why: string;
  /** What is special about it. */
  readonly made: string;
}

/** What the C host says. */
export interface Verdict {
  /** A certificate that cannot be read; 0 where all can. */
  readonly error: number;
  /** What is wrong, by the flags of Mbed TLS; 0 where it is trusted. */
  readonly flags: number;
  readonly problem: string;
}

export const isTrusted = ({ error, flags }: Verdict): boolean => error === 0 && flags === 0;
