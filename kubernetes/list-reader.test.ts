import fc from "fast-check";
import { ListReader } from "./list-reader";

const encoder = new TextEncoder();

/** What is read of some bytes that arrive in pieces. @param ends where pieces end */
function read(bytes: Uint8Array, ends: readonly number[]): { items: readonly unknown[]; rest: object } {
  const reader = new ListReader();
  const items: unknown[] = [];
  const cuts = [...ends, bytes.length].map((end) => Math.min(end, bytes.length)).sort((one, other) => one - other);
  let from = 0;
  for (const to of cuts) {
    for (const item of reader.read(bytes.slice(from, to))) items.push(item);
    from = to;
  }
  const { items: others, ...rest } = reader.end();
  return { items: [...items, ...(others ?? [])], rest };
}

function whole(text: string): { items: readonly unknown[]; rest: object } {
  const { items, ...rest } = JSON.parse(text);
  return { items: [...(items ?? [])], rest };
}

/** What a reader returns, or that it throws. */
function resultOf<T>(act: () => T): T | "refused" {
  try {
    return act();
  } catch {
    return "refused";
  }
}

/** Texts with what separates JSON, with backslashes at their end, and with characters of one to four bytes. */
const text = fc.string({
  unit: fc.constantFrom("\\", '"', "[", "]", "{", "}", ",", ":", "items", " ", "\n", "a", "é", "€", "😀", "\ud800"),
  maxLength: 8,
});
const other = text.filter((key) => key !== "items");
const key = fc.oneof(text, fc.constantFrom("items", "metadata"));
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    text,
    fc.constantFrom(null, true, 0, -1.5e30, [], {}),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(key, tie("value"), { maxKeys: 3 }),
  ),
}));
const list = fc
  .record({
    before: fc.dictionary(other, value, { maxKeys: 3 }),
    items: fc.oneof(
      { weight: 8, arbitrary: fc.array(value, { maxLength: 6 }) },
      { weight: 1, arbitrary: fc.constantFrom(null, undefined) },
    ),
    after: fc.dictionary(other, value, { maxKeys: 3 }),
    indent: fc.constantFrom("", " ", "\t", "\r\n"),
    isEscaped: fc.boolean(),
  })
  .map(({ before, items, after, indent, isEscaped }) => {
    const text = JSON.stringify({ ...before, items, ...after }, undefined, indent);
    const asEscape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
    return isEscaped ? text.replace(/[^ -~\s]/g, asEscape) : text;
  });
const ends = fc.array(fc.nat(400), { maxLength: 12 });

test("it reads what JSON.parse reads, whatever its pieces are", () => {
  fc.assert(
    fc.property(list, ends, (text, ends) => {
      expect(read(encoder.encode(text), ends)).toEqual(whole(text));
    }),
    { numRuns: 300 },
  );
});

test("it reads what arrives byte by byte", () => {
  fc.assert(
    fc.property(list, (text) => {
      const bytes = encoder.encode(text);
      expect(read(bytes, [...bytes.keys()])).toEqual(whole(text));
    }),
  );
});

test("it refuses what JSON.parse refuses, if a byte is missing, another or too much, or the end is", () => {
  const change = fc.record({
    at: fc.nat(),
    count: fc.nat(1),
    by: fc.constantFrom("", ...'{}[],:"\\0 x'),
    isCut: fc.boolean(),
  });
  fc.assert(
    fc.property(list, ends, change, (text, ends, { at, count, by, isCut }) => {
      const place = at % text.length;
      const changed = text.slice(0, place) + (isCut ? "" : by + text.slice(place + count));
      const bytes = encoder.encode(changed);
      // Of a key that is there twice, JSON.parse takes the last.
      fc.pre((changed.match(/"items"/g)?.length ?? 0) < 2);
      const expected = resultOf(() => whole(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)));
      expect(resultOf(() => read(bytes, ends))).toEqual(expected);
    }),
    { numRuns: 500 },
  );
});

test.each([
  ['{"items":[1,]}', "Unexpected end"],
  ['{"items":[,1]}', "Unexpected end"],
  ['{"items":[1 2]}', "after JSON"],
  ['{"items":[{"a":1]}}', "JSON"],
  ['{"items":[1}', "JSON"],
  ['{"items":[1]', "JSON"],
  ['{"items":[1]}x', "after JSON"],
])("%s is refused", (text, message) => {
  expect(() => read(encoder.encode(text), [])).toThrow(message);
});

test("each item is read as soon as it ends", () => {
  const reader = new ListReader();
  const items = (text: string) => [...reader.read(encoder.encode(text))];
  expect(items('{"items":[{"a":"}')).toEqual([]);
  expect(items('"}')).toEqual([]);
  expect(items(',{"b":1},2')).toEqual([{ a: "}" }, { b: 1 }]);
  expect(items("3")).toEqual([]);
  expect(items('],"metadata":{"continue":"x"}}')).toEqual([23]);
  expect(reader.end()).toEqual({ items: [], metadata: { continue: "x" } });
});

test("an item of more than 8 MiB is refused, and a list of many small ones is not", () => {
  const piece = new Uint8Array(1024 * 1024).fill("x".charCodeAt(0));
  const filled = (between: string): number => {
    const reader = new ListReader<string>();
    let count = 0;
    const take = (bytes: Uint8Array) => {
      for (const item of reader.read(bytes)) count += item.length > 0 ? 1 : 0;
    };
    take(encoder.encode('{"items":["'));
    for (let sent = 0; sent < 9; sent += 1) {
      take(piece);
      take(encoder.encode(between));
    }
    take(encoder.encode('"]}'));
    return count;
  };
  expect(filled('","')).toBe(9);
  expect(() => filled("")).toThrow("an object of the list has more than 8388608 bytes");
});
