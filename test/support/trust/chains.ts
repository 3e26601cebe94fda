/** A server's chain, a client's authorities and name, and the result of Go's verifier (test/tools/certificates). */
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
  /** The special property of this chain. */
  readonly made: string;
}

/** The result of the C host. */
export interface Verdict {
  /** A certificate that cannot be read; 0 if all can. */
  readonly error: number;
  /** Flags of Mbed TLS; 0 if the chain is trusted. */
  readonly flags: number;
  readonly problem: string;
}

export const isTrusted = ({ error, flags }: Verdict): boolean => error === 0 && flags === 0;
