import { assert, property, string, uint8Array } from "fast-check";
import { base64, equal, fromBase64, hex, textOf, utf8 } from "./bytes";

test("bytes cross as Node has them, and back", () => {
  assert(
    property(uint8Array(), uint8Array(), (bytes, others) => {
      const buffer = Buffer.from(bytes);
      expect(base64(bytes)).toBe(buffer.toString("base64"));
      expect(fromBase64(base64(bytes))).toEqual(bytes);
      expect(fromBase64(buffer.toString("base64url"))).toEqual(bytes);
      expect(hex(bytes)).toBe(buffer.toString("hex"));
      expect(textOf(bytes)).toBe(buffer.toString("utf8"));
      expect(equal(bytes, others)).toBe(buffer.equals(others));
      expect(equal(bytes, bytes.slice())).toBe(true);
    }),
  );
});

test("texts cross as Node has them", () => {
  assert(property(string({ unit: "binary" }), (text) => expect(textOf(utf8(text))).toBe(Buffer.from(text).toString())));
  expect(textOf(utf8("\ufeffa"))).toBe("\ufeffa");
  expect([...utf8("\ud800")]).toEqual([0xef, 0xbf, 0xbd]);
});

test("base64 may have line breaks", () => {
  expect(textOf(fromBase64("YWJj\r\nZA==\n"))).toBe("abcd");
});

test.each(["a", "aaaaa", "a b=", "aa=a", "====", "ä"])("%j is not base64", (text) => {
  expect(() => fromBase64(text)).toThrow("not base64");
});
