import { indented, wrapped } from "./wrap";

test.each<[string, number, readonly string[]]>([
  ["", 5, [""]],
  ["one two three", 7, ["one two", "three"]],
  ["one two three", 13, ["one two three"]],
  ["see https://example.com/a-long-link now", 10, ["see", "https://example.com/a-long-link", "now"]],
])("%j in %i columns", (text, width, lines) => {
  expect(wrapped(text, width)).toEqual(lines);
});

test("without a terminal a text stays on one line", () => {
  expect(indented("one two three", 2, undefined)).toEqual(["  one two three"]);
  expect(indented("one two three four five six", 4, 24)).toEqual(["    one two three four", "    five six"]);
});
