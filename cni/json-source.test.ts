import fc from "fast-check";
import { membersOf } from "./json-source";

/** The text of the last member with a key. */
function memberSource(document: string, key: string): string | undefined {
  const last = membersOf(document).findLast((member) => member.key === key);
  return last && document.slice(last.start, last.end);
}

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

  it("is the member's value in any document, with white space and escapes anywhere", () => {
    const space = fc.stringMatching(/^[ \t\r\n]{0,3}$/);
    const text = fc.oneof(
      fc.constantFrom("a", "b", '"', "\\", '\\"', "{", "]", "a\\"),
      fc.string(),
      fc.string({ unit: "binary" }),
    );
    const escaped = (value: string) =>
      Array.from(
        JSON.stringify(value)
          .slice(1, -1)
          .matchAll(/\\u....|\\.|[^\\]/gsu),
        ([each]) => (/^[a-z]$/.test(each) ? `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}` : each),
      ).join("");
    const scalar = fc.oneof(
      fc.jsonValue({ maxDepth: 0 }).map((value) => JSON.stringify(value)),
      text.map((value) => `"${escaped(value)}"`),
      fc.constantFrom("1e5", "-0.0", "12345678901234567890", "1E+400", '"\\\\"', '"\\""', '"\\\\\\""'),
    );
    const { object: document } = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
      value: fc.oneof({ depthSize: "small", withCrossShrink: true }, scalar, tie("list"), tie("object")),
      list: fc
        .tuple(fc.array(tie("value"), { maxLength: 4 }), space)
        .map(([all, gap]) => `[${gap}${all.join(`${gap},${gap}`)}${gap}]`),
      object: fc
        .tuple(fc.array(fc.tuple(text, fc.boolean(), tie("value")), { maxLength: 5 }), space)
        .map(([members, gap]) => {
          const texts = members.map(
            ([key, isEscaped, value]) =>
              `"${isEscaped ? escaped(key) : JSON.stringify(key).slice(1, -1)}"${gap}:${gap}${value}`,
          );
          return `{${gap}${texts.join(`${gap},${gap}`)}${gap}}`;
        }),
    }));
    fc.assert(
      fc.property(document, space, (value, gap) => {
        const source = memberSource(`${gap}${value}${gap}`, "a");
        const parsed = JSON.parse(value);
        const member = Object.hasOwn(parsed, "a") ? parsed.a : undefined;
        expect(source === undefined ? undefined : JSON.parse(source)).toEqual(member);
        if (source !== undefined) expect(source).toBe(source.trim());
      }),
      { numRuns: 500 },
    );
  });
});
