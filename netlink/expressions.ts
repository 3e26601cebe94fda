/**
 * The expressions of an nftables rule: one function each, named as in the kernel. Each includes describe.ts's words for
 * it, so that a rule can store its own description.
 */
import type { PortRange } from "../cni/ports";
import type { AddressKind, Match, Rule, Verdict } from "../cni/redirect/rules";
import { type Family, netmask, type Subnet } from "../cni/subnets";
import { ascii } from "../host/bytes";
import { attribute, nested, number32, text } from "./codec";
import { bytesInWords } from "./describe";
import { elementsInWords, type IntervalSet, lookupData, portSet, subnetSet } from "./interval-set";

/** An encoded expression and its description. */
interface Expression {
  readonly words: string;
  /** @param set the number of the expression's set in the batch */
  readonly encode: (set: number) => Uint8Array;
  /** The set that it uses, which must be created before its rule. */
  readonly set?: IntervalSet;
}

/**
 * Longer lists use a set. Each item of a short list gets a rule, which is created faster and has its own comment. Usual
 * lists have two items.
 */
export const MAX_ALTERNATIVES = 8;

const NFTA_LIST_ELEM = 1;
const NFTA_EXPR = { name: 1, data: 2 };
const NFTA_DATA = { value: 1, verdict: 2 };
const NFTA_VERDICT_CODE = 1;
const NFT_RETURN = -5;

const VERDICT_REGISTER = 0;
const REGISTER = 1;

const META_KEY = { "out-interface": 7, uid: 10, gid: 11, protocol: 16 } as const;
const PAYLOAD_BASE = { network: 1, transport: 2 } as const;
const CMP = { "=": 0, "<=": 3, ">=": 5 } as const;
const IFNAMSIZ = 16;
const IPPROTO_TCP = 6;
const PORT = { offset: 2, length: 2 };
/** Offsets of the addresses in a packet's network header. */
const ADDRESS: Readonly<Record<Family, { source: number; destination: number; length: number }>> = {
  ip: { source: 12, destination: 16, length: 4 },
  ip6: { source: 8, destination: 24, length: 16 },
};

const encode = (name: string, data: readonly Uint8Array[]) =>
  nested(NFTA_LIST_ELEM, text(NFTA_EXPR.name, name), nested(NFTA_EXPR.data, ...data));

function expression(words: string, name: string, ...data: readonly Uint8Array[]): Expression {
  const bytes = encode(name, data);
  return { words, encode: () => bytes };
}

const value = (type: number, bytes: Uint8Array) => nested(type, attribute(NFTA_DATA.value, bytes));

function meta(key: keyof typeof META_KEY): Expression {
  return expression(key, "meta", number32(2, META_KEY[key]), number32(1, REGISTER));
}

function compare(operation: keyof typeof CMP, bytes: Uint8Array): Expression {
  const words = `${operation} ${bytesInWords(bytes)}`;
  return expression(words, "cmp", number32(1, REGISTER), number32(2, CMP[operation]), value(3, bytes));
}

function payload(base: keyof typeof PAYLOAD_BASE, offset: number, length: number): Expression {
  const place = [number32(2, PAYLOAD_BASE[base]), number32(3, offset), number32(4, length)];
  return expression(`${base} bytes ${offset}+${length}`, "payload", number32(1, REGISTER), ...place);
}

function mask(bytes: Uint8Array): Expression {
  return expression(
    `& ${bytesInWords(bytes)}`,
    "bitwise",
    number32(1, REGISTER),
    number32(2, REGISTER),
    number32(3, bytes.length),
    value(4, bytes),
    value(5, new Uint8Array(bytes.length)),
  );
}

function immediate(bytes: Uint8Array): Expression {
  return expression(`to ${bytesInWords(bytes)}`, "immediate", number32(1, REGISTER), value(2, bytes));
}

function verdictReturn(): Expression {
  const verdict = nested(NFTA_DATA.verdict, number32(NFTA_VERDICT_CODE, NFT_RETURN));
  return expression("return", "immediate", number32(1, VERDICT_REGISTER), nested(2, verdict));
}

function redirect(): Expression {
  return expression("redirect", "redir", number32(1, REGISTER));
}

function lookup(set: IntervalSet): Expression {
  return { words: elementsInWords(set.elements), encode: (id) => encode("lookup", lookupData(id, REGISTER)), set };
}

const portBytes = (port: number) => Uint8Array.of(port >> 8, port & 0xff);

/** The kernel compares ids in the machine's byte order. */
const idBytes = (id: number) => Uint8Array.of(id, id >>> 8, id >>> 16, id >>> 24);

const tcp = () => [meta("protocol"), compare("=", Uint8Array.of(IPPROTO_TCP))];

const loadPort = () => payload("transport", PORT.offset, PORT.length);

function toPort(range: PortRange): readonly Expression[] {
  const load = loadPort();
  if (range.low === range.high) return [...tcp(), load, compare("=", portBytes(range.low))];
  return [...tcp(), load, compare(">=", portBytes(range.low)), compare("<=", portBytes(range.high))];
}

function loadAddress(family: Family, end: AddressKind): Expression {
  const { length, [end]: offset } = ADDRESS[family];
  return payload("network", offset, length);
}

function address(subnet: Subnet, end: AddressKind): readonly Expression[] {
  const { length } = ADDRESS[subnet.family];
  const whole = subnet.prefix === 8 * length;
  return [
    loadAddress(subnet.family, end),
    ...(whole ? [] : [mask(netmask(subnet.prefix, length))]),
    compare("=", subnet.address),
  ];
}

/** Networks of one family. */
function addresses(kind: AddressKind, subnets: readonly Subnet[]): readonly (readonly Expression[])[] {
  const [first] = subnets;
  if (first === undefined || subnets.length <= MAX_ALTERNATIVES) return subnets.map((subnet) => address(subnet, kind));
  return [[loadAddress(first.family, kind), lookup(subnetSet(first.family, subnets))]];
}

function toPorts(ports: readonly PortRange[]): readonly (readonly Expression[])[] {
  if (ports.length <= MAX_ALTERNATIVES) return ports.map(toPort);
  return [[...tcp(), loadPort(), lookup(portSet(ports))]];
}

/**
 * A condition's alternatives: without a set nftables cannot match one of several ports, so each port gets its own rule.
 */
function alternatives(match: Match): readonly (readonly Expression[])[] {
  switch (match.kind) {
    case "tcp":
      return [tcp()];
    case "tcp-port":
      return [toPort({ low: match.port, high: match.port })];
    case "tcp-ports":
      return toPorts(match.ports);
    case "source":
    case "destination":
      return addresses(match.kind, match.subnets);
    case "uid":
    case "gid":
      return [[meta(match.kind), compare("=", idBytes(match.id))]];
    case "out-interface":
      return [[meta("out-interface"), compare("=", ascii(match.name.padEnd(IFNAMSIZ, "\0")))]];
  }
}

function conclude(verdict: Verdict): readonly Expression[] {
  return verdict.kind === "return" ? [verdictReturn()] : [immediate(portBytes(verdict.port)), redirect()];
}

/** The expression lists of a rule: one, or one for each of a few ports or networks. */
export function expressionLists(rule: Rule): readonly (readonly Expression[])[] {
  const lists = rule.matches.reduce<readonly (readonly Expression[])[]>(
    (made, match) => made.flatMap((before) => alternatives(match).map((each) => [...before, ...each])),
    [[]],
  );
  return lists.map((list) => [...list, ...conclude(rule.verdict)]);
}
