/**
 * Sets of intervals: many ports or networks for one rule. They are anonymous, so each lives as long as its rule, and
 * constant, so they cannot be extended later.
 */
import { mergePorts, type PortRange } from "../cni/ports";
import { type Family, mergeSubnets, netmask, type Subnet } from "../cni/subnets";
import { attribute, attributeList, attributes, nested, number32, readNumber32, text } from "./codec";
import { bytesInWords } from "./describe";

/** The start of an interval, or the first value after one. */
export interface Element {
  readonly key: Uint8Array;
  readonly isEnd: boolean;
}

export interface IntervalSet {
  /** The data type with which `nft` shows the values. */
  readonly type: number;
  readonly keyLength: number;
  /** In ascending order, and intervals are not adjacent. */
  readonly elements: readonly Element[];
}

/** A pattern from which the kernel makes a unique name. */
const ANY_NAME = "__set%d";
const FLAGS = 0x1 /* anonymous */ | 0x2 /* constant */ | 0x4; /* interval */
/** `enum datatypes` of nft. */
const TYPE = { ip: 7, ip6: 8, port: 13 } as const;
const NFTA_SET = { table: 1, name: 2, flags: 3, keyType: 4, keyLength: 5, id: 10 };
const NFTA_SET_ELEM_LIST = { table: 1, set: 2, elements: 3, id: 4 };
const NFTA_SET_ELEM = { key: 1, flags: 3 };
const NFTA_DATA_VALUE = 1;
const NFTA_LIST_ELEM = 1;
const INTERVAL_END = 0x1;
const EMPTY = new Uint8Array(0);
const NFTA_LOOKUP = { set: 1, register: 2, id: 4 };
/** An attribute, here the list of a message's elements, has at most 64 KiB; an element of IPv6 takes 36 bytes. */
const ELEMENTS_PER_MESSAGE = 1000;

/** The next value; undefined after the highest one, which leaves the interval open. */
function next(bytes: Uint8Array): Uint8Array | undefined {
  const made = bytes.slice();
  for (let at = made.length - 1; at >= 0; at--) {
    const byte = (made[at] ?? 0) + 1;
    made[at] = byte;
    if (byte <= 0xff) return made;
  }
  return undefined;
}

function interval(low: Uint8Array, high: Uint8Array): readonly Element[] {
  const end = next(high);
  return [{ key: low, isEnd: false }, ...(end === undefined ? [] : [{ key: end, isEnd: true }])];
}

const portBytes = (port: number) => Uint8Array.of(port >> 8, port);

export function portSet(ranges: readonly PortRange[]): IntervalSet {
  const elements = mergePorts(ranges).flatMap(({ low, high }) => interval(portBytes(low), portBytes(high)));
  return { type: TYPE.port, keyLength: 2, elements };
}

/** @param subnets of one family */
export function subnetSet(family: Family, subnets: readonly Subnet[]): IntervalSet {
  const elements: Element[] = [];
  for (const { address, prefix } of mergeSubnets(subnets)) {
    const mask = netmask(prefix, address.length);
    const [start, end] = interval(
      address,
      address.map((byte, at) => byte | ~(mask[at] ?? 0)),
    );
    // Adjacent networks are one interval.
    const last = elements.at(-1);
    if (start !== undefined && last?.isEnd === true && isEqual(last.key, start.key)) elements.pop();
    else if (start !== undefined) elements.push(start);
    if (end !== undefined) elements.push(end);
  }
  return { type: TYPE[family], keyLength: family === "ip" ? 4 : 16, elements };
}

const isEqual = (one: Uint8Array, other: Uint8Array) => one.every((byte, at) => byte === other[at]);

/** The attributes of the message that creates a set. @param id unique within the batch */
export function setAttributes(table: string, id: number, set: IntervalSet): readonly Uint8Array[] {
  return [
    text(NFTA_SET.table, table),
    text(NFTA_SET.name, ANY_NAME),
    number32(NFTA_SET.flags, FLAGS),
    number32(NFTA_SET.keyType, set.type),
    number32(NFTA_SET.keyLength, set.keyLength),
    number32(NFTA_SET.id, id),
  ];
}

function encoded({ key, isEnd }: Element): Uint8Array {
  return nested(
    NFTA_LIST_ELEM,
    ...(isEnd ? [number32(NFTA_SET_ELEM.flags, INTERVAL_END)] : []),
    nested(NFTA_SET_ELEM.key, attribute(NFTA_DATA_VALUE, key)),
  );
}

/** The attributes of each message that fills a set. */
export function elementAttributes(table: string, id: number, set: IntervalSet): readonly (readonly Uint8Array[])[] {
  const messages: (readonly Uint8Array[])[] = [];
  for (let at = 0; at < set.elements.length; at += ELEMENTS_PER_MESSAGE) {
    messages.push([
      text(NFTA_SET_ELEM_LIST.table, table),
      text(NFTA_SET_ELEM_LIST.set, ANY_NAME),
      number32(NFTA_SET_ELEM_LIST.id, id),
      nested(NFTA_SET_ELEM_LIST.elements, ...set.elements.slice(at, at + ELEMENTS_PER_MESSAGE).map(encoded)),
    ]);
  }
  return messages;
}

/** The data of the lookup expression for a set of the same batch. */
export function lookupData(id: number, register: number): readonly Uint8Array[] {
  return [text(NFTA_LOOKUP.set, ANY_NAME), number32(NFTA_LOOKUP.register, register), number32(NFTA_LOOKUP.id, id)];
}

/** The attributes of the request for a set's elements. */
export const elementsOf = (table: string, name: string): readonly Uint8Array[] => [
  text(NFTA_SET_ELEM_LIST.table, table),
  text(NFTA_SET_ELEM_LIST.set, name),
];

/** The elements in a message of a set's listing. */
export function listedElements(message: ReadonlyMap<number, Uint8Array>): readonly Element[] {
  const found: Element[] = [];
  for (const [, element] of attributeList(message.get(NFTA_SET_ELEM_LIST.elements) ?? EMPTY)) {
    let key: Uint8Array = EMPTY;
    let isEnd = false;
    for (const [type, member] of attributeList(element)) {
      if (type === NFTA_SET_ELEM.key) key = attributes(member).get(NFTA_DATA_VALUE) ?? EMPTY;
      else if (type === NFTA_SET_ELEM.flags) isEnd = ((readNumber32(member) ?? 0) & INTERVAL_END) !== 0;
    }
    found.push({ key, isEnd });
  }
  return found;
}

/** FNV-1a, of 32 bits. */
function digest(text: string): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}

/** A description of a set, short enough for a rule's user data: the number of intervals, and their hash. */
export function elementsInWords(elements: readonly Element[]): string {
  const texts = elements.map(({ key, isEnd }) => `${bytesInWords(key).padStart(5, "0")}${isEnd ? ")" : "["}`).sort();
  return `in ${elements.filter(({ isEnd }) => !isEnd).length} intervals ${digest(texts.join(""))}`;
}
