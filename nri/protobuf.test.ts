import fc from "fast-check";
import { concat } from "../host/bytes";
import { bytesField, Fields, Keys, numberField, ProtocolError } from "./protobuf";
import { texts } from "./runtime.testing";

const WANTED = ["k", "key-of-length-16", "k".repeat(127)];
const KEYS = new Keys(WANTED);

const text = (field: number, value: string) => bytesField(field, texts.encode(value));

/** An entry of a map, with its members in the usual and in another order. */
const entry = fc
  .record({
    key: fc.oneof(fc.constantFrom(...WANTED), fc.string({ maxLength: 200 })),
    value: fc.string({ maxLength: 200 }),
    isTurned: fc.boolean(),
  })
  .map(({ key, value, isTurned }) => {
    const members = [text(1, key), text(2, value)];
    return concat(isTurned ? members.reverse() : members);
  });

const field = fc.oneof(
  fc.tuple(fc.constantFrom(1, 2, 3, 300), fc.nat()).map(([number, value]) => numberField(number, value)),
  fc
    .tuple(fc.constantFrom(1, 2, 3, 300), fc.uint8Array({ maxLength: 300 }))
    .map(([number, value]) => bytesField(number, value)),
  entry.map((bytes) => bytesField(5, bytes)),
  fc.constant(Uint8Array.of(0x3d, 1, 2, 3, 4)),
);

test("each field is visited, with its number or bytes", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.tuple(
          fc.integer({ min: 1, max: 5000 }),
          fc.oneof(fc.integer({ min: 1 }), fc.uint8Array({ maxLength: 300 })),
        ),
      ),
      (fields) => {
        const read = new Fields(
          concat(
            fields.map(([number, value]) =>
              (typeof value === "number" ? numberField : bytesField)(number, value as never),
            ),
          ),
          texts,
        );
        const seen: unknown[] = [];
        while (read.next()) seen.push([read.field, read.number === 0 ? read.data() : read.number]);
        expect(seen).toEqual(fields);
      },
    ),
    { numRuns: 1000 },
  );
});

test("wanted entries of a map are found among any others, and the last of a key counts", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          field,
          entry.map((bytes) => bytesField(5, bytes)),
        ),
        { maxLength: 20 },
      ),
      (fields) => {
        const [some, all]: Record<string, string>[] = [{}, {}];
        for (const read = new Fields(concat(fields), texts); read.next(); ) {
          if (read.field !== 5) continue;
          read.addTo(some as Record<string, string>, KEYS);
          const members: Record<number, string> = {};
          for (const entry = read.fields(); entry.next(); ) members[entry.field] = entry.text();
          if (WANTED.includes(members[1] ?? "")) Object.assign(all as object, { [members[1] as string]: members[2] });
        }
        expect(some).toEqual(all);
      },
    ),
    { numRuns: 2000 },
  );
});

test("a message that ends within a field is refused", () => {
  fc.assert(
    fc.property(fc.array(field, { minLength: 1, maxLength: 5 }), fc.nat(), (fields, cut) => {
      const ends = fields.map((_, count) => concat(fields.slice(0, count)).length);
      const bytes = concat(fields);
      const size = cut % bytes.length;
      const visit = () => {
        for (const read = new Fields(bytes.subarray(0, size), texts); read.next(); );
      };
      if (ends.includes(size)) visit();
      else expect(visit).toThrow(ProtocolError);
    }),
    { numRuns: 2000 },
  );
});

test.each([
  ["a field of an unknown type", [0x0b], "a field of type 3"],
  ["a number of 11 bytes", [0x08, ...Array<number>(10).fill(0xff), 1], "more than 64 bits"],
])("%s is refused", (_, bytes, message) => {
  const read = new Fields(Uint8Array.from(bytes), texts);
  expect(() => read.next()).toThrow(message);
});
