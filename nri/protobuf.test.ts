import fc from "fast-check";
import { concat } from "../host/bytes";
import { bytesField, Keys, Message, numberField, ProtocolError, whole } from "./protobuf";
import { texts } from "./runtime.testing";

const WANTED = ["k", "key-of-length-16", "k".repeat(127)];
const KEPT = Object.assign(whole(1, 2), { 5: new Keys(WANTED) });

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

/** The result of a reader that keeps everything in field 5, by wanted keys. */
function entriesOf(message: Message): Readonly<Record<string, string>> {
  const entries = message.messages(5).map((each): [string, string] => [each.text(1), each.text(2)]);
  return Object.fromEntries(entries.filter(([key]) => WANTED.includes(key)));
}

test("wanted fields are found among any others", () => {
  fc.assert(
    fc.property(fc.array(field, { maxLength: 20 }), (fields) => {
      const bytes = concat(fields);
      const all = new Message(bytes, texts);
      const some = new Message(bytes, texts, KEPT);
      for (const number of [1, 2]) {
        expect(some.all(number)).toEqual(all.all(number));
        expect(some.number(number)).toBe(all.number(number));
      }
      expect(some.all(300)).toEqual([]);
      expect(some.map(5)).toEqual(entriesOf(all));
    }),
    { numRuns: 2000 },
  );
});

test("a message that ends within a field is refused, even if the field is unwanted", () => {
  fc.assert(
    fc.property(fc.array(field, { minLength: 1, maxLength: 5 }), fc.nat(), (fields, cut) => {
      const bytes = concat(fields);
      const part = bytes.subarray(0, cut % (bytes.length || 1));
      const outcome = (read: () => Message) => {
        try {
          read();
          return "read";
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
          return "refused";
        }
      };
      expect(outcome(() => new Message(part, texts, KEPT))).toBe(outcome(() => new Message(part, texts)));
    }),
    { numRuns: 2000 },
  );
});
