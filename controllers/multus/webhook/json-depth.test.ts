import * as fc from "fast-check";
import { isDeeperThan } from "./json-depth";

const isDeeper = (text: string, most: number) => isDeeperThan(Buffer.from(text), most);

/** By the value itself. */
function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

test.each([
  ["", 0],
  ["1", 0],
  ["[]", 1],
  ['{"a":[{}]}', 3],
  ["[[],[],[[]]]", 3],
  ['["[[[[","\\"[[[["]', 1],
  ['["\\\\",[]]', 2],
  ['["\\u005b[[[","é[😀["]', 1],
  // None of these is JSON, and each is read to its end.
  ['["[[[', 1],
  ['["\\', 1],
])("%s is %d deep", (text, depth) => {
  expect(isDeeper(text, depth)).toBe(false);
  if (depth > 0) expect(isDeeper(text, depth - 1)).toBe(true);
});

test("it tells what the parsed value tells", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      const [text, depth] = [JSON.stringify(value, undefined, 1), depthOf(value)];
      expect(isDeeper(text, depth)).toBe(false);
      if (depth > 0) expect(isDeeper(text, depth - 1)).toBe(true);
    }),
  );
});
