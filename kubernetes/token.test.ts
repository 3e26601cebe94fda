import { expiryOf } from "./token";

const token = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;

it("a token tells when it expires", () => {
  expect(expiryOf(token({ exp: 1_782_820_800 }))).toEqual(new Date("2026-06-30T12:00:00Z"));
  for (const other of [token({}), token({ exp: "1" }), "opaque", "a.b.c", ""]) expect(expiryOf(other)).toBeUndefined();
});
