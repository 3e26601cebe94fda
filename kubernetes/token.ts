/** When a service account's token expires; undefined where it is no JWT or never does. */
export function expiryOf(token: string): Date | undefined {
  const claims = token.split(".")[1];
  if (claims === undefined) return undefined;
  try {
    const { exp } = JSON.parse(Buffer.from(claims, "base64url").toString("utf8")) as { exp?: unknown };
    return typeof exp === "number" ? new Date(exp * 1000) : undefined;
  } catch {
    return undefined;
  }
}
