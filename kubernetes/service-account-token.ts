/** Claims of a service account token, which is not verified here. */
export interface TokenClaims {
  /** `system:serviceaccount:NAMESPACE:NAME`. */
  readonly subject: string;
  /** Milliseconds since 1970. */
  readonly issuedAt: number;
  readonly expiresAt: number;
}

const RENEW_AT = { earliest: 0.7, latest: 0.8 } as const;

/** Reads the claims; undefined without a subject and an expiry. @param decodeBase64 decodes base64url */
export function readClaims(token: string, decodeBase64: (text: string) => string): TokenClaims | undefined {
  try {
    const { sub, iat, exp } = JSON.parse(decodeBase64(token.split(".")[1] ?? "")) as Record<string, unknown>;
    if (typeof sub !== "string" || typeof iat !== "number" || typeof exp !== "number") return undefined;
    return { subject: sub, issuedAt: iat * 1000, expiresAt: exp * 1000 };
  } catch {
    return undefined;
  }
}

/**
 * When to replace a token: after seven to eight tenths of its lifetime, so that processes that got theirs at the same
 * time do not renew at the same time.
 * @param random from 0 up to 1
 */
export function renewalTime({ issuedAt, expiresAt }: TokenClaims, random: number): number {
  const { earliest, latest } = RENEW_AT;
  return issuedAt + (expiresAt - issuedAt) * (earliest + (latest - earliest) * random);
}
