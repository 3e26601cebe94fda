import type { Credential } from "./credential";
import type { State } from "./state";

/** What to do next. */
export type Step =
  /** Make a certificate: the next one, or where none is kept the one to serve at once. */
  | { readonly kind: "issue"; readonly keep: Credential | undefined }
  /** Serve the next certificate. */
  | { readonly kind: "switch"; readonly next: Credential }
  /** Trust no other authority than that of the certificate that is served. */
  | { readonly kind: "forget" }
  | { readonly kind: "wait"; readonly ms: number };

export interface Observed {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** How long nothing has changed in what is served and trusted, and clients were told of it. */
  readonly settledMs: number;
  /** How long it takes until every client and every replica goes by a change. */
  readonly settleMs: number;
}

/** A new certificate is made when a third of the old one's life is left. */
const LEFT = 1 / 3;

const isUsable = ({ validFrom, validTo }: Credential, now: number) => validFrom <= now && now < validTo;

function usable(credential: Credential | undefined, now: number): Credential | undefined {
  return credential !== undefined && isUsable(credential, now) ? credential : undefined;
}

function renewalTime({ validFrom, validTo }: Credential): number {
  return validTo - (validTo - validFrom) * LEFT;
}

/**
 * Rotation, one write a step: a next certificate is made and its authority trusted beside the old; when every client
 * trusts it, it is served; when every replica serves it, the old authority goes.
 * @param state what the Secret holds; undefined where there is none, or nothing of use in it
 * @param shown what this process shows its clients
 */
export function plan(state: State | undefined, shown: Credential | undefined, observed: Observed): Step {
  const { now, settledMs, settleMs } = observed;
  if (state === undefined) return { kind: "issue", keep: usable(shown, now) };
  const { serving, next, trusted } = state;
  const settled = (step: Step): Step => (settledMs >= settleMs ? step : { kind: "wait", ms: settleMs - settledMs });
  if (next !== undefined && isUsable(next, now)) {
    const step: Step = { kind: "switch", next };
    return isUsable(serving, now) ? settled(step) : step;
  }
  if (next !== undefined || !isUsable(serving, now)) return { kind: "issue", keep: usable(serving, now) };
  if (trusted.some((pem) => pem !== serving.ca)) return settled({ kind: "forget" });
  const ms = renewalTime(serving) - now;
  return ms > 0 ? { kind: "wait", ms } : { kind: "issue", keep: serving };
}
