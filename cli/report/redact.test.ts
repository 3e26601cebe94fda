import fc from "fast-check";
import { stringify } from "yaml";
import { redact, redactText } from "./redact";
import { seeded, word } from "./secrets.testing";

test("no secret of a known form survives in a text or an object", () => {
  fc.assert(
    fc.property(seeded, word, ({ text, secrets }, plain) => {
      const found = [
        redactText(text),
        redactText(`linkerd-cni: error: plugin: ${text}\n${text}\n`),
        redactText(JSON.stringify({ level: "error", message: text })),
        stringify(redact({ message: text, nested: JSON.stringify({ text }) })),
        stringify(redact({ annotations: { "example.com/note": text } })),
        stringify(redact({ env: [{ name: "COLOUR", value: plain }, { name: "EMPTY" }], args: [text] })),
      ].join("\n");
      for (const secret of [...secrets, plain].filter(({ length }) => length >= 8)) expect(found).not.toContain(secret);
    }),
    { numRuns: 1_000 },
  );
});

test.each([
  ["Bearer", "the registry wants a Bearer token=x", "the registry wants a Bearer [redacted]"],
  ["a user in a URL", "GET https://me:pass@proxy:3128/x", "GET https://[redacted]@proxy:3128/x"],
  ["a path, a digest and an address", "/etc/cni/net.d sha256:0123456789abcdef 10.0.0.1", undefined],
  ["a mail address", "see me@example.com", undefined],
])("%s", (_, text, expected) => {
  expect(redactText(text)).toBe(expected ?? text);
});
