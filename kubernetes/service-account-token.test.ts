import { readClaims, renewalTime } from "./service-account-token";

const decoded = (text: string) => Buffer.from(text, "base64url").toString("utf8");
const jwt = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.signature`;

test("a token is renewed after seven to eight tenths of its lifetime", () => {
  const claims = readClaims(jwt({ sub: "system:serviceaccount:a:b", iat: 1_000, exp: 2_000 }), decoded);
  expect(claims).toEqual({ subject: "system:serviceaccount:a:b", issuedAt: 1_000_000, expiresAt: 2_000_000 });
  const times = [0, 0.5, 0.999].map((random) => claims && renewalTime(claims, random));
  expect(times).toEqual([1_700_000, 1_750_000, 1_799_900]);
});

test.each(["", "token", "a.b.c", jwt({ sub: "x" }), jwt({ iat: 1, exp: 2 }), "e30.bnVsbA.x"])(
  "%j has no claims",
  (token) => expect(readClaims(token, decoded)).toBeUndefined(),
);
