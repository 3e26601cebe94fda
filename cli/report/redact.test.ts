import fc from "fast-check";
import { stringify } from "yaml";
import { Redactor } from "./redact";
import { seeded, word } from "./secrets.testing";

const redactor = new Redactor(undefined);

test("no secret survives in a text or an object", () => {
  fc.assert(
    fc.property(seeded, word, ({ text, secrets }, plain) => {
      const found = [
        redactor.text(text),
        redactor.text(`linkerd-cni: error: plugin: ${text}\n${text}\n`),
        redactor.text(JSON.stringify({ level: "error", message: text })),
        stringify(redactor.object({ message: text, nested: JSON.stringify({ text, tokens: [plain] }) })),
        stringify(redactor.object({ annotations: { "example.com/token": plain, "example.com/note": text } })),
        stringify(redactor.object({ env: [{ name: "COLOUR", value: plain }], args: [`--token=${plain}`] })),
        stringify(redactor.object({ kind: "Secret", data: { colour: plain }, stringData: { colour: plain } })),
      ].join("\n");
      for (const secret of [...secrets, plain].filter(({ length }) => length >= 8)) expect(found).not.toContain(secret);
    }),
    { numRuns: 1_000 },
  );
});
