import { type Authority, isValidAt, type ServingCertificate } from "./certificate";
import type { Validity } from "./x509";

/** The state in the Secret, shared by all replicas. */
export interface RotationState {
  /** The served certificate. */
  readonly serving: ServingCertificate;
  /** Certificates of the authorities that clients should trust, PEM. */
  readonly trusted: readonly string[];
  /** The trusted authority that signs renewals; undefined if its key is not in the Secret. */
  readonly signer: Authority | undefined;
}

/** The next step, which is one write to the Secret. */
export type RotationStep =
  /** Make an authority and a certificate, and use both at once: no current one exists. */
  | { readonly kind: "create" }
  /** Make another trusted authority, while `serving` stays. */
  | { readonly kind: "add-authority"; readonly serving: ServingCertificate }
  /** Serve another certificate from the signer. */
  | { readonly kind: "renew"; readonly signer: Authority }
  /** Trust only the issuer of the served certificate. */
  | {
      readonly kind: "drop-authorities";
      readonly serving: ServingCertificate;
      readonly signer: Authority | undefined;
    }
  | { readonly kind: "wait"; readonly ms: number };

export interface Observed {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Validity of a renewed certificate, in milliseconds. */
  readonly validMs: number;
  /** Milliseconds since the last change of the Secret and the `caBundle`. */
  readonly settledMs: number;
  /** Milliseconds until every client and every replica has seen a change. */
  readonly settleMs: number;
}

/** A certificate is renewed when a third of its lifetime is left. */
const LEFT = 1 / 3;

const renewalTime = ({ validFrom, validTo }: Validity) => validTo - (validTo - validFrom) * LEFT;

/**
 * Plans the rotation. A certificate is renewed by the authority that signed it, which clients trust already. Only
 * if that one cannot sign (its key is unknown, it ends too soon, or the Secret was deleted) another authority is
 * made, trusted beside the old, and signs the next certificate once clients know it.
 * @param state what the Secret holds; undefined if there is none, or nothing usable in it
 * @param served what this process serves
 */
export function planRotation(
  state: RotationState | undefined,
  served: ServingCertificate | undefined,
  { now, validMs, settledMs, settleMs }: Observed,
): RotationStep {
  const onceSettled = (step: RotationStep): RotationStep =>
    settledMs >= settleMs ? step : { kind: "wait", ms: settleMs - settledMs };
  if (state === undefined) {
    return served !== undefined && isValidAt(served, now)
      ? { kind: "add-authority", serving: served }
      : { kind: "create" };
  }
  const { serving, trusted } = state;
  const signer = usableSigner(state, now, validMs);
  if (!isValidAt(serving, now)) return signer === undefined ? { kind: "create" } : { kind: "renew", signer };
  // Another authority was added to sign the next certificate.
  if (signer !== undefined && signer.cert !== serving.ca) return onceSettled({ kind: "renew", signer });
  const ms = renewalTime(serving) - now;
  if (ms <= 0) return signer === undefined ? { kind: "add-authority", serving } : { kind: "renew", signer };
  if (trusted.some((pem) => pem !== serving.ca)) {
    return onceSettled({ kind: "drop-authorities", serving, signer: state.signer });
  }
  return { kind: "wait", ms };
}

/** The signer, if it outlives the certificate. */
function usableSigner({ signer }: RotationState, now: number, validMs: number): Authority | undefined {
  return signer !== undefined && isValidAt(signer, now) && signer.validTo >= now + validMs ? signer : undefined;
}
