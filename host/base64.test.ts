import * as fc from "fast-check";
import { base64, fromBase64 } from "./base64";

test("encodes and decodes bytes as Node does", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      const text = Buffer.from(bytes).toString("base64");
      expect(base64(bytes)).toBe(text);
      expect(fromBase64(text)).toEqual(bytes);
      expect(fromBase64(text.replace(/=+$/, ""))).toEqual(bytes);
      expect(fromBase64(text.replace(/(.{7})/g, "$1\r\n "))).toEqual(bytes);
    }),
  );
});

test.each(["A", "AAAAA", "AAA=A", "=", "====", "A===", "AA=", "AAAA=", "AA-_", "Ä===", "AAA\0", "AA==AA=="])(
  "%j is not base64",
  (text) => {
    expect(() => fromBase64(text)).toThrow(/^it is not base64$/);
  },
);

test("reads a long text", () => {
  const bytes = new Uint8Array(1_000_000).map((_, at) => at * 7);
  expect(Buffer.compare(fromBase64(base64(bytes)), bytes)).toBe(0);
});
