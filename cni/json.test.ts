import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { sameJson } from "./json";

test("agrees with deep equality on any two values", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 2 }), fc.jsonValue({ maxDepth: 2 }), (left, right) => {
      const parsed = JSON.parse(JSON.stringify([left, right]));
      expect(sameJson(parsed[0], parsed[1])).toBe(isDeepStrictEqual(parsed[0], parsed[1]));
      expect(sameJson(parsed[0], JSON.parse(JSON.stringify(parsed[0])))).toBe(true);
    }),
  );
});

test.each([
  [{ a: 1, b: [1, 2] }, { b: [1, 2], a: 1 }, true],
  [{ a: 1 }, { a: 1, b: undefined }, false],
  [[1], { 0: 1 }, false],
  [null, {}, false],
  [[1, 2], [2, 1], false],
  [{ a: "1" }, { a: 1 }, false],
])("%j and %j: %s", (left, right, same) => expect(sameJson(left, right)).toBe(same));
