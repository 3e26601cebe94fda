import { asText, typed, withAssignments, withFile } from "./set";

const cases: readonly (readonly [string, unknown])[] = [
  ["a=b", { a: "b" }],
  ["a=1,b=true,c=null,d=01,e=1.5", { a: 1, b: true, c: null, d: "01", e: "1.5" }],
  ["a.b.c=x,a.d=y", { a: { b: { c: "x" }, d: "y" } }],
  ["a={x,y}", { a: ["x", "y"] }],
  ["a={}", { a: [] }],
  ["a[0].b=x,a[1].b=y", { a: [{ b: "x" }, { b: "y" }] }],
  ["a=25\\,587", { a: "25,587" }],
  ["a=x=y", { a: "x=y" }],
  ["a\\.b/c=x", { "a.b/c": "x" }],
  ["a=", { a: "" }],
];

test.each(cases)("--set %s", (text, expected) => {
  expect(withAssignments({}, text, typed)).toEqual(expected);
});

test("--set-string takes everything as text", () => {
  expect(withAssignments({ b: 1 }, "a=1,c=true", asText)).toEqual({ a: "1", b: 1, c: "true" });
});

test("--set-file takes the content of a file", () => {
  expect(withFile({}, "a.b=/x", (path) => `content of ${path}`)).toEqual({ a: { b: "content of /x" } });
});

test("what is no assignment is refused", () => {
  expect(() => withAssignments({}, "a", typed)).toThrow('"a" is not an assignment: write name=value');
});
