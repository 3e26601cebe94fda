import { assert, property, string, uint8Array } from "fast-check";
import { equal, textOf, utf8 } from "./bytes";

test("bytes are read and compared as Node does", () => {
  assert(
    property(uint8Array(), uint8Array(), (bytes, others) => {
      const buffer = Buffer.from(bytes);
      expect(textOf(bytes)).toBe(buffer.toString("utf8"));
      expect(equal(bytes, others)).toBe(buffer.equals(others));
      expect(equal(bytes, bytes.slice())).toBe(true);
    }),
  );
});

test("texts are written as Node does", () => {
  assert(property(string({ unit: "binary" }), (text) => expect(textOf(utf8(text))).toBe(Buffer.from(text).toString())));
  expect(textOf(utf8("\ufeffa"))).toBe("\ufeffa");
  expect([...utf8("\ud800")]).toEqual([0xef, 0xbf, 0xbd]);
});
