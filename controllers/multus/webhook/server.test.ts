import { jsonExcess } from "./server";

const excess = (text: string) => jsonExcess(new TextEncoder().encode(text));

test("the number of keys and values is bounded", () => {
  const bound = "has more than 100000 keys and values";
  expect(excess(`[${"0,".repeat(99_999)}0]`)).toBeUndefined();
  expect(excess(`[${"0,".repeat(100_000)}0]`)).toBe(bound);
  expect(excess(`[${"[],".repeat(60_000)}0]`)).toBe(bound);
  expect(excess(`{${'"a":0,'.repeat(60_000)}"a":0}`)).toBe(bound);
});

test("so is the depth", () => {
  const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
  expect(excess(nested(100))).toBeUndefined();
  expect(excess(nested(101))).toBe("is nested deeper than 100 levels");
  expect(excess('{"a":'.repeat(101))).toBe("is nested deeper than 100 levels");
});

test("the content of strings does not count", () => {
  const annotation = JSON.stringify({ a: "[{,".repeat(200_000), b: '\\"\\\\'.repeat(1_000), c: "[".repeat(1_000) });
  expect(excess(annotation)).toBeUndefined();
  expect(excess(`{"a\\\\":"${"[".repeat(200)}`)).toBeUndefined();
  expect(excess(`"a\\\\"${"[".repeat(101)}`)).toBe("is nested deeper than 100 levels");
  expect(excess(`"a\\"${"[".repeat(101)}`)).toBeUndefined();
});

test("invalid JSON is left to the parser", () => {
  for (const text of ["", "]", "]".repeat(1_000), '"', '"\\', "\u0000"]) expect(excess(text)).toBeUndefined();
});
