import { examples } from "../cni/redirect/examples.testing";
import { redirectRules } from "../cni/redirect/rules";
import { attributeList } from "./codec";
import { describeRule } from "./describe";
import { expressionLists } from "./expressions";
import { elementsInWords } from "./interval-set";
import { decodeMark, encodeMark, type Mark } from "./mark";

const mark: Mark = { index: 2, count: 7, families: 1, words: "protocol = 06 return" };

describe("a rule's mark", () => {
  it("is read back after other user data", () => {
    const comment = Buffer.from("\0\x03ab\0", "latin1");
    const bytes = Buffer.concat([comment, encodeMark(mark, comment.length)]);
    expect(decodeMark(bytes)).toEqual(mark);
    expect(decodeMark(comment)).toBeUndefined();
  });

  it("omits what does not fit", () => {
    const long = { ...mark, words: "x".repeat(120) };
    expect(decodeMark(encodeMark(long, 120))).toEqual(long);
    expect(encodeMark(long, 140)).toHaveLength(0);
  });

  it("of other bytes is undefined", () => {
    for (const bytes of [[], [0x4c], [0x4c, 200, 1], [0x4c, 2, 0x31, 0x2f], [0, 0, 0]]) {
      expect(decodeMark(Uint8Array.from(bytes))).toBeUndefined();
    }
  });
});

it.each(Object.entries(examples))("the words in rules equal their descriptions: example %s", (_, options) => {
  const rules = redirectRules(options).flatMap(({ inbound, outbound }) => [...inbound, ...outbound]);
  for (const list of rules.flatMap(expressionLists)) {
    const listed = list.flatMap(({ encode }) => [...attributeList(encode(1))].map(([, value]) => value));
    const inSet = () => elementsInWords(list.flatMap(({ set }) => set?.elements ?? []));
    expect(list.map(({ words }) => words).join(" ")).toBe(describeRule(listed, inSet));
  }
});
