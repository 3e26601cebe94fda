/** A certificate that clients are shown, with its key. */
export interface TlsPair {
  /** PEM; the certificate comes first, then those that lead from it to the authority, if any. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
}
