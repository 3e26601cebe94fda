import { examples } from "../cni/redirect/examples.testing";
import { redirectRules } from "../cni/redirect/rules";
import { concat } from "../host/bytes";
import { creationBatch } from "./batch";
import { messages } from "./codec";
import { compareNative } from "./compare";
import type { Netfilter } from "./socket";

const GET = { table: 0xa01, chain: 0xa04, rule: 0xa07, elements: 0xa0d };
/** What the kernel lists is what the batch made: for elements the list of one set. */
const NEW: Readonly<Record<number, number>> = {
  [GET.table]: 0xa00,
  [GET.chain]: 0xa03,
  [GET.rule]: 0xa06,
  [GET.elements]: 0xa0c,
};

const frame = (message: Uint8Array) => {
  const size = new DataView(message.buffer, message.byteOffset, message.byteLength).getUint32(0, true);
  return message.subarray(0, size);
};

/** Lists what a batch made, family by family. */
function listing(batch: Uint8Array): Netfilter {
  const made: { type: number; family: number | undefined; bytes: Uint8Array }[] = [];
  for (const { type, payload } of messages(batch)) {
    const bytes = batch.subarray(
      payload.byteOffset - batch.byteOffset - 16,
      payload.byteOffset - batch.byteOffset + payload.length,
    );
    made.push({ type, family: payload[0], bytes: frame(bytes) });
  }
  return (request) => {
    const [asked] = [...messages(request)];
    const found = made.filter(({ type, family }) => type === NEW[asked?.type ?? 0] && family === asked?.payload[0]);
    return [concat(found.map(({ bytes }) => bytes))];
  };
}

const odd = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ low: 2 * index + 1, high: 2 * index + 1 }));
const rules = (count: number) => creationBatch(redirectRules({ ...examples.plain, skipInboundPorts: odd(count) }));

test.each([0, 8, 9, 1000])("rules that leave out %i ports are as their marks say", (count) => {
  expect(compareNative(listing(rules(count)))).toEqual({ isThere: true });
});

test("a set that holds something else is named", () => {
  const batch = Uint8Array.from(rules(9));
  // The key of the first element, port 1: a data attribute of six bytes.
  const key = Buffer.from([6, 0, 1, 0, 0, 1]);
  const at = Buffer.from(batch).indexOf(key);
  expect(at).toBeGreaterThan(0);
  batch[at + 4] = 0xff;
  const { difference } = compareNative(listing(batch));
  const set = (hash: string) => `"protocol = 06 transport bytes 2\\+2 in 9 intervals ${hash} return"`;
  expect(difference).toMatch(new RegExp(`chain inbound, rule 1: is ${set("\\w{8}")}, should be ${set("\\w{8}")}$`));
});
