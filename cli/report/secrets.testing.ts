import fc from "fast-check";

const base64 = (text: string) => Buffer.from(text).toString("base64");
/** A password, or a token of no known form. */
export const word = fc.stringMatching(/^[A-Za-z0-9_.~!%^*-]{8,40}$/);
const bytes = fc.uint8Array({ minLength: 96, maxLength: 400 }).map((array) => Buffer.from(array).toString("base64"));
const url = (text: string) => text.replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");

/** A secret, the text with it, and the parts that must not appear. */
interface Seeded {
  readonly text: string;
  readonly secrets: readonly string[];
}

const lines = (text: string) => text.match(/.{1,64}/g) ?? [];
const pem = bytes.map((key) => {
  const all = lines(key);
  return { text: `-----BEGIN RSA PRIVATE KEY-----\n${all.join("\n")}\n-----END RSA PRIVATE KEY-----\n`, secrets: all };
});
const jwt = fc
  .tuple(fc.uuid(), bytes)
  .map(([sub, key]) =>
    [base64('{"alg":"RS256","typ":"JWT"}'), base64(JSON.stringify({ sub })), key].map(url).join("."),
  );

/** Secrets of every form, in logs, messages and configuration. */
export const seeded: fc.Arbitrary<Seeded> = fc.oneof(
  pem,
  pem.map(({ text, secrets }) => ({ text: JSON.stringify({ key: text }), secrets })),
  pem.map(({ text, secrets }) => ({ text: `failed: ${JSON.stringify(JSON.stringify({ key: text }))} (x)`, secrets })),
  pem.map(({ text }) => ({ text: `ca: ${base64(text)}`, secrets: lines(base64(text)) })),
  jwt.map((text) => ({ text: `got ${text}, refused`, secrets: text.split(".") })),
  jwt.map((text) => ({ text: `{"status":{"token":"${text}"}}`, secrets: text.split(".") })),
  ...["Bearer", "bearer", "Basic"].map((scheme) =>
    word.map((text) => ({ text: `> Authorization: ${scheme} ${text}`, secrets: [text] })),
  ),
  word.map((text) => ({ text: `headers map[Accept:[*/*] Authorization:[Bearer ${text}]]`, secrets: [text] })),
  word.map((text) => ({ text: `{"headers":{"authorization":"Bearer ${text}"}}`, secrets: [text] })),
  word.map((text) => ({ text: `curl -H 'Authorization: Bearer ${text}' https://10.0.0.1`, secrets: [text] })),
  word.map((text) => ({
    text: `GET https://user:${text.replace(/[%^*]/g, "x")}@proxy:3128/x`,
    secrets: [text.replace(/[%^*]/g, "x")],
  })),
);
