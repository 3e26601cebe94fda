import { asText, typed, withAssignments, withFile } from "./set";

const cases: readonly (readonly [string, unknown])[] = [
  ["a=b", { a: "b" }],
  ["a=1,b=true,c=null,d=01,e=1.5", { a: 1, b: true, c: null, d: "01", e: "1.5" }],
  ["a.b.c=x,a.d=y", { a: { b: { c: "x" }, d: "y" } }],
  ["a={x,y}", { a: ["x", "y"] }],
  ["a={}", { a: [""] }],
  ["a={x, y},b={1,Null}", { a: ["x", " y"], b: [1, null] }],
  ["a=True,b=FALSE,c=NULL", { a: true, b: false, c: null }],
  ["a=-0,b=+5,c=-01,d=00,e=1_0,f=0x1", { a: 0, b: 5, c: -1, d: "00", e: "1_0", f: "0x1" }],
  ["a=9007199254740991,b=9223372036854775808", { a: 9007199254740991, b: "9223372036854775808" }],
  ["a[1]=x,a[0][1]=y", { a: [[null, "y"], "x"] }],
  ["a=b{c,d=e}", { a: "b{c", d: "e}" }],
  ["a=1,", { a: 1 }],
  ["", {}],
  ["a[0].b=x,a[1].b=y", { a: [{ b: "x" }, { b: "y" }] }],
  ["a=25\\,587", { a: "25,587" }],
  ["a=x=y", { a: "x=y" }],
  ["a\\.b/c=x", { "a.b/c": "x" }],
  ["a=", { a: "" }],
];

test.each(cases)("--set %s", (text, expected) => {
  expect(withAssignments({}, text, typed)).toEqual(expected);
});

test("--set-string reads everything as text", () => {
  expect(withAssignments({ b: 1 }, "a=1,c=true", asText)).toEqual({ a: "1", b: 1, c: "true" });
});

test("--set-file reads the content of a file", () => {
  expect(withFile({}, "a.b=/x", (path) => `content of ${path}`)).toEqual({ a: { b: "content of /x" } });
});

const refused: readonly (readonly [string, string])[] = [
  ["a", '"a" is not an assignment: write name=value'],
  ["a.b,c=1", "is not an assignment"],
  ["a.=1", "is not an assignment"],
  ["=1", "is not an assignment"],
  ["a[0]b=1", "is not an assignment"],
  ["a={x", "a list ends in }"],
  ["a=1,a.b=1", "a is not a map"],
  ["a=1,a[0]=1", "a is not a list"],
  ["a[0]=1,a[0][0]=1", "a[0] is not a list"],
  ["a[x]=1", "[x is not an index"],
  ["a[-1]=1", "[-1 is not an index"],
  ["a[70000]=1", "is not an index between 0 and 65536"],
];

test.each(refused)("--set %s is refused", (text, problem) => {
  expect(() => withAssignments({}, text, typed)).toThrow(problem);
});

test("the given values do not change", () => {
  const values = { a: { b: [1] } };
  expect(withAssignments(values, "a.b[0]=2,a.c=3", typed)).toEqual({ a: { b: [2], c: 3 } });
  expect(values).toEqual({ a: { b: [1] } });
});
