import fc from "fast-check";
import { memberSource } from "./json-source";

describe("the text of a member", () => {
  it.each([
    ['{"a":12345678901234567890}', "12345678901234567890"],
    ['{ "b" : {"a":1} , "a" : [ 1.0, {"x":"}]\\"\\\\"} ] }', '[ 1.0, {"x":"}]\\"\\\\"} ]'],
    ['{"a":1,"a":{}}', "{}"],
    ['{"\\u0061":"x"}', '"x"'],
    ['{"b":"\\"a\\":1"}', undefined],
    ["{}", undefined],
    ['\n{"a":\tnull\n}\n', "null"],
  ])("of %s is %s", (document, wanted) => expect(memberSource(document, "a")).toBe(wanted));

  it("is the member's value in any document", () => {
    const object = fc.dictionary(fc.oneof(fc.constantFrom("a", "b"), fc.string()), fc.jsonValue(), {
      noNullPrototype: true,
    });
    fc.assert(
      fc.property(object, fc.nat(4), (value, indent) => {
        const source = memberSource(JSON.stringify(value, undefined, indent), "a");
        const member = Object.hasOwn(value, "a") ? JSON.parse(JSON.stringify(value["a"])) : undefined;
        expect(source === undefined ? undefined : JSON.parse(source)).toEqual(member);
      }),
    );
  });
});
