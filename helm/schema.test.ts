import { rangePattern } from "./schema";

const ranges = [
  [1, 65535],
  [0, 9],
  [5, 5],
  [7, 1234],
  [-1, 20],
  [-120, 7],
  [1, 2147483647],
] as const;

test.each(ranges)("the pattern for %d to %d matches these numbers and no others", (low, high) => {
  const pattern = new RegExp(`^${rangePattern(low, high)}$`);
  const wrong: number[] = [];
  for (let number = -300; number <= 66_000; number++) {
    if (pattern.test(String(number)) !== (number >= low && number <= high)) wrong.push(number);
  }
  expect(wrong).toEqual([]);
  expect(pattern.test("01")).toBe(false);
  expect(pattern.test(String(high))).toBe(true);
  expect(pattern.test(String(high + 1))).toBe(false);
});
