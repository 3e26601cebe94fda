import fc from "fast-check";
import { mergePorts, type PortRange, parsePorts } from "./ports";

const range = fc
  .tuple(fc.integer({ min: 0, max: 65_535 }), fc.oneof(fc.nat(3), fc.nat(65_535)))
  .map(([low, more]): PortRange => ({ low, high: Math.min(65_535, low + more) }));

function members(ranges: readonly PortRange[]): Uint8Array {
  const found = new Uint8Array(65_536);
  for (const { low, high } of ranges) found.fill(1, low, high + 1);
  return found;
}

test("merged ranges are the same ports, ascending and not adjacent", () => {
  fc.assert(
    fc.property(fc.array(range, { maxLength: 60 }), (ranges) => {
      const merged = mergePorts(ranges);
      expect(Buffer.compare(members(merged), members(ranges))).toBe(0);
      const gaps = merged.slice(1).map(({ low }, index) => low - (merged[index]?.high ?? 0));
      expect(gaps.filter((gap) => gap < 2)).toEqual([]);
    }),
  );
});

test("a list can be formatted and read again, with any white space and empty items", () => {
  const space = fc.stringMatching(/^[ \t\n]{0,2}$/);
  const refuse = (item: string): never => {
    throw new Error(item);
  };
  fc.assert(
    fc.property(fc.array(range, { maxLength: 20 }), fc.array(space, { minLength: 4, maxLength: 4 }), (ranges, gaps) => {
      const [a = "", b = "", c = "", d = ""] = gaps;
      const texts = ranges.map(({ low, high }) => `${a}${low}${low === high ? "" : `${b}-${c}${high}`}${d}`);
      expect(parsePorts(texts.join(`,${a},`), refuse)).toEqual(ranges);
    }),
  );
});
