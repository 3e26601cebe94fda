import { examples } from "../cni/redirect/examples.testing";
import { redirectRules } from "../cni/redirect/rules";
import { concat } from "../host/bytes";
import { Errno } from "../host/errno";
import { creationBatch } from "./batch";
import { attributes, message, messages, type Received } from "./codec";
import { compareNative } from "./compare";
import { answer } from "./fake.testing";
import type { Netfilter } from "./socket";

/** The kernel lists what the batch created: for elements, those of one set. */
const NEW: Readonly<Record<number, number>> = { 2561: 0xa00, 2564: 0xa03, 2567: 0xa06, 2573: 0xa0c };
const GET_SET_ELEMENTS = 0xa0d;
const DUMP = 0x300;
const DUMP_INTERRUPTED = 0x10;
const HEADER = 16;
const FAMILY_HEADER = 4;

/** The end of a list, or another message without a payload. */
const done = (flags = 0) => message({ type: 3, flags, sequence: 1, family: 0, attributes: [] });
const absent = (): Uint8Array => answer(1, Errno.ENOENT);

/** The bytes of a message within its batch. */
function bytesOf(batch: Uint8Array, { payload }: Received): Uint8Array {
  const at = payload.byteOffset - batch.byteOffset;
  return batch.subarray(at - HEADER, at + payload.length);
}

/** Whether a message concerns the request's object or its content. */
function isAbout({ type, payload }: Received, asked: Received): boolean {
  if (type !== NEW[asked.type] || payload[0] !== asked.payload[0]) return false;
  const made = attributes(payload.subarray(FAMILY_HEADER));
  const named = attributes(asked.payload.subarray(FAMILY_HEADER));
  // The kernel names the sets of a batch.
  if (asked.type === GET_SET_ELEMENTS) return true;
  return [...named].every(([key, value]) => Buffer.compare(value, made.get(key) ?? new Uint8Array(0)) === 0);
}

/** A kernel with the objects of a batch. */
function listing(batch: Uint8Array): Netfilter {
  const made = [...messages(batch)];
  return (request) => {
    const [asked] = [...messages(request)];
    const found = made
      .filter((each) => asked !== undefined && isAbout(each, asked))
      .map((each) => bytesOf(batch, each));
    if (((asked?.flags ?? 0) & DUMP) !== 0) return [concat([...found, done()])];
    return [found[0] ?? absent()];
  };
}

const odd = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ low: 2 * index + 1, high: 2 * index + 1 }));
const rules = (count: number) => creationBatch(redirectRules({ ...examples.plain, skipInboundPorts: odd(count) }));

test.each([0, 8, 9, 1000])("rules that skip %i ports match their marks", (count) => {
  expect(compareNative(listing(rules(count)))).toEqual({ isThere: true });
});

test("a set with other content is named", () => {
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

describe("a list that changes while it is read", () => {
  const kernel = listing(rules(0));
  /** Interrupts the first lists of rules, and leaves their rules out. */
  function interrupted(times: number): Netfilter {
    let left = times;
    return (request) => {
      const [asked] = [...messages(request)];
      const isInterrupted = asked?.type === 0xa07 && left-- > 0;
      return isInterrupted ? [done(DUMP_INTERRUPTED)] : kernel(request);
    };
  }

  it("is read again", () => {
    expect(compareNative(interrupted(4))).toEqual({ isThere: true });
  });

  it("is used anyway after some attempts", () => {
    expect(compareNative(interrupted(5)).difference).toMatch(/chain inbound is empty$/);
  });
});

describe("foreign content", () => {
  it("is a chain whose rules have no marks", () => {
    const batch = Buffer.from(rules(0));
    const marks = [...batch.toString("latin1").matchAll(/L.(?=[0-9]+\/[0-9]+\/[0-9]+ )/gs)];
    expect(marks).toHaveLength(4);
    for (const { index } of marks) batch[index] = 0x4d;
    expect(compareNative(listing(batch)).difference).toMatch(
      /chain inbound: "protocol = 06 to 4143 redirect" was added$/,
    );
  });

  const ports = (count: number) =>
    creationBatch(redirectRules({ ...examples.plain, portsToRedirect: Array.from({ length: count }, (_, at) => at) }));

  it("is more rules than ADD programs, even if each has its mark", () => {
    expect(compareNative(listing(ports(1000)))).toEqual({ isThere: true });
    expect(compareNative(listing(ports(1101))).difference).toMatch(/chain inbound: has more than 1100 rules/);
  });

  it("is a list that breaks off", () => {
    const cut: Netfilter = (request) =>
      [...messages(request)][0]?.type === 0xa07 ? [new Uint8Array(0)] : listing(rules(0))(request);
    expect(() => compareNative(cut)).toThrow(/ENOBUFS/);
  });
});
