import fc from "fast-check";
import type { PortRange } from "../cni/ports";
import { netmask, parseSubnet, type Subnet } from "../cni/subnets";
import { attributeList, attributes } from "./codec";
import {
  type Element,
  elementAttributes,
  elementsInWords,
  type IntervalSet,
  listedElements,
  portSet,
  subnetSet,
} from "./interval-set";

/** Whether the kernel finds a key: the last element at or before it decides. */
function holds({ elements }: IntervalSet, key: Uint8Array): boolean {
  const before = elements.filter((element) => Buffer.compare(element.key, key) <= 0);
  return before.at(-1)?.isEnd === false;
}

function expectAscending({ elements }: IntervalSet): void {
  elements.slice(1).forEach(({ key, isEnd }, index) => {
    expect(Buffer.compare(key, elements[index]?.key ?? key)).toBe(1);
    expect(isEnd).toBe(elements[index]?.isEnd === false);
  });
}

const portBytes = (port: number) => Uint8Array.of(port >> 8, port);
const port = fc.oneof(fc.nat(40), fc.integer({ min: 65_500, max: 65_535 }));
const range = fc.tuple(port, port).map(([a, b]): PortRange => ({ low: Math.min(a, b), high: Math.max(a, b) }));

test("a set of ports contains those of its ranges", () => {
  fc.assert(
    fc.property(fc.array(range, { minLength: 1, maxLength: 20 }), port, (ranges, asked) => {
      const set = portSet(ranges);
      expectAscending(set);
      expect(holds(set, portBytes(asked))).toBe(ranges.some(({ low, high }) => low <= asked && asked <= high));
    }),
  );
});

const families = [["ip", 4] as const, ["ip6", 16] as const];
/** Addresses that differ in their first and last bits, so that networks often meet. */
const address = (size: number) =>
  fc
    .tuple(fc.constantFrom(0, 0x7f, 0x80, 0xff), fc.constantFrom(0, 1, 2, 3, 0xfe, 0xff))
    .map(([first, last]) => Uint8Array.from({ length: size }, (_, at) => (at === size - 1 ? last : first)));

test.each(families)("a set of networks contains their addresses: %s", (family, size) => {
  const subnet = fc
    .tuple(address(size), fc.oneof(fc.nat(2), fc.integer({ min: 8 * size - 3, max: 8 * size })))
    .map(([bytes, prefix]): Subnet => {
      const mask = netmask(prefix, size);
      return { family, address: bytes.map((byte, at) => byte & mask[at]!), prefix, text: "" };
    });
  fc.assert(
    fc.property(fc.array(subnet, { minLength: 1, maxLength: 12 }), address(size), (subnets, asked) => {
      const set = subnetSet(family, subnets);
      expectAscending(set);
      const within = subnets.some((each) =>
        netmask(each.prefix, size).every((mask, at) => (asked[at]! & mask) === each.address[at]),
      );
      expect(holds(set, asked)).toBe(within);
    }),
  );
});

test("a large set is sent in several messages, none too long, and reads back equal", () => {
  const hosts = Array.from({ length: 1000 }, (_, index) => parseSubnet(`fd00::${(2 * index).toString(16)}/128`)!);
  const set = subnetSet("ip6", hosts);
  expect(set.elements).toHaveLength(2000);
  const messages = elementAttributes("t", 1, set).map((each) => attributes(Buffer.concat(each)));
  expect(messages.length).toBeGreaterThan(1);
  for (const message of messages) {
    expect([...attributeList(message.get(3)!)].length % 2).toBe(0);
    expect(message.get(3)!.length).toBeLessThan(0x10000 - 4);
  }
  const read: readonly Element[] = messages.flatMap(listedElements);
  expect(read.map(({ key, isEnd }) => [...key, isEnd])).toEqual(set.elements.map(({ key, isEnd }) => [...key, isEnd]));
});

test("a set's description distinguishes it from others, in any order of listing", () => {
  const words = (...ranges: readonly PortRange[]) => elementsInWords(portSet(ranges).elements);
  const set = portSet([
    { low: 1, high: 5 },
    { low: 80, high: 80 },
  ]);
  expect(elementsInWords([...set.elements].reverse())).toBe(elementsInWords(set.elements));
  expect(elementsInWords(set.elements)).toMatch(/^in 2 intervals [0-9a-f]{8}$/);
  const others = [words({ low: 1, high: 5 }), words({ low: 1, high: 5 }, { low: 80, high: 81 }), words()];
  expect(new Set([...others, elementsInWords(set.elements)]).size).toBe(4);
});
