import { constants, gzipSync } from "node:zlib";
import { assert, constantFrom, property, uint8Array } from "fast-check";
import { gunzip } from "./gunzip";

const strategies = constantFrom(
  { level: 0 },
  { level: 9 },
  { level: 9, strategy: constants.Z_FIXED },
  { level: 9, strategy: constants.Z_HUFFMAN_ONLY },
);

test("what gzip packs in blocks of every kind is unpacked", () => {
  assert(
    property(uint8Array({ max: 5, maxLength: 2_000 }), strategies, (bytes, options) => {
      expect(gunzip(gzipSync(bytes, options))).toEqual(bytes);
    }),
  );
});

test("a text of the size of a kernel's configuration", () => {
  const lines = Array.from(
    { length: 5_000 },
    (_, index) => `CONFIG_${(index * 7919) % 5_003}=${index % 3 ? "y" : "m"}\n`,
  );
  const text = Buffer.from(lines.join(""));
  expect(text.equals(gunzip(gzipSync(text)))).toBe(true);
});

test("what is damaged is refused", () => {
  const packed = gzipSync("abc".repeat(1_000));
  assert(
    property(uint8Array({ minLength: packed.length, maxLength: packed.length }), (noise) => {
      const damaged = packed.map((byte, at) => (noise[at] === 0 ? byte ^ 1 : byte));
      try {
        expect(gunzip(damaged).length).toBeLessThanOrEqual(4 * 1024 * 1024);
      } catch (error) {
        expect((error as Error).message).toMatch(/gzip/);
      }
    }),
  );
  expect(() => gunzip(packed.subarray(0, 12))).toThrow(/gzip/);
  expect(() => gunzip(new Uint8Array())).toThrow("not a plain gzip file");
});
