/** The expressions of an nftables rule: one function each, named as in the kernel. */

import type { PortRange } from "../../cni/ports";
import type { Match, Rule, Verdict } from "../../cni/redirect/rules";
import { type Family, netmask, type Subnet } from "../../cni/subnets";
import { attribute, nested, number32, text } from "./codec";

const NFTA_LIST_ELEM = 1;
const NFTA_EXPR = { name: 1, data: 2 };
const NFTA_DATA = { value: 1, verdict: 2 };
const NFTA_VERDICT_CODE = 1;
const NFT_RETURN = -5;

const VERDICT_REGISTER = 0;
const REGISTER = 1;

const META_KEY = { oifname: 7, skuid: 10, skgid: 11, l4proto: 16 };
const PAYLOAD_BASE = { network: 1, transport: 2 };
const CMP = { equal: 0, atMost: 3, atLeast: 5 };
const IFNAMSIZ = 16;
const IPPROTO_TCP = 6;
const PORT = { offset: 2, length: 2 };
/** Where the addresses stand in a packet's network header. */
const ADDRESS: Readonly<Record<Family, { source: number; destination: number; length: number }>> = {
  ip: { source: 12, destination: 16, length: 4 },
  ip6: { source: 8, destination: 24, length: 16 },
};

function expression(name: string, ...data: readonly Buffer[]): Buffer {
  return nested(NFTA_LIST_ELEM, text(NFTA_EXPR.name, name), nested(NFTA_EXPR.data, ...data));
}

const value = (type: number, bytes: Uint8Array) => nested(type, attribute(NFTA_DATA.value, bytes));

function meta(key: number): Buffer {
  return expression("meta", number32(2, key), number32(1, REGISTER));
}

function compare(operation: number, bytes: Uint8Array): Buffer {
  return expression("cmp", number32(1, REGISTER), number32(2, operation), value(3, bytes));
}

function payload(base: number, offset: number, length: number): Buffer {
  return expression("payload", number32(1, REGISTER), number32(2, base), number32(3, offset), number32(4, length));
}

function mask(bytes: Uint8Array): Buffer {
  return expression(
    "bitwise",
    number32(1, REGISTER),
    number32(2, REGISTER),
    number32(3, bytes.length),
    value(4, bytes),
    value(5, new Uint8Array(bytes.length)),
  );
}

function immediate(bytes: Uint8Array): Buffer {
  return expression("immediate", number32(1, REGISTER), value(2, bytes));
}

function verdictReturn(): Buffer {
  const verdict = nested(NFTA_DATA.verdict, number32(NFTA_VERDICT_CODE, NFT_RETURN));
  return expression("immediate", number32(1, VERDICT_REGISTER), nested(2, verdict));
}

function redirect(): Buffer {
  return expression("redir", number32(1, REGISTER));
}

const portBytes = (port: number) => Uint8Array.of(port >> 8, port & 0xff);

/** Ids are compared as the kernel holds them: in the machine's byte order. */
function idBytes(id: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(id);
  return bytes;
}

const tcp = () => [meta(META_KEY.l4proto), compare(CMP.equal, Uint8Array.of(IPPROTO_TCP))];

function toPort(range: PortRange): readonly Buffer[] {
  const load = payload(PAYLOAD_BASE.transport, PORT.offset, PORT.length);
  if (range.low === range.high) return [...tcp(), load, compare(CMP.equal, portBytes(range.low))];
  return [...tcp(), load, compare(CMP.atLeast, portBytes(range.low)), compare(CMP.atMost, portBytes(range.high))];
}

function address(subnet: Subnet, end: "source" | "destination"): readonly Buffer[] {
  const { length, [end]: offset } = ADDRESS[subnet.family];
  const load = payload(PAYLOAD_BASE.network, offset, length);
  const whole = subnet.prefix === 8 * length;
  return [load, ...(whole ? [] : [mask(netmask(subnet.prefix, length))]), compare(CMP.equal, subnet.address)];
}

/** A condition's alternatives: nftables has no "one of these ports" without a set, so each port is a rule of its own. */
function alternatives(match: Match): readonly (readonly Buffer[])[] {
  switch (match.kind) {
    case "tcp":
      return [tcp()];
    case "tcp-port":
      return [toPort({ low: match.port, high: match.port })];
    case "tcp-ports":
      return match.ports.map(toPort);
    case "source":
    case "destination":
      return match.subnets.map((subnet) => address(subnet, match.kind));
    case "uid":
      return [[meta(META_KEY.skuid), compare(CMP.equal, idBytes(match.id))]];
    case "gid":
      return [[meta(META_KEY.skgid), compare(CMP.equal, idBytes(match.id))]];
    case "out-interface":
      return [[meta(META_KEY.oifname), compare(CMP.equal, Buffer.from(match.name.padEnd(IFNAMSIZ, "\0")))]];
  }
}

function conclude(verdict: Verdict): readonly Buffer[] {
  return verdict.kind === "return" ? [verdictReturn()] : [immediate(portBytes(verdict.port)), redirect()];
}

/** The expression lists of a rule: one, or one for each of its ports. */
export function expressionLists(rule: Rule): readonly (readonly Buffer[])[] {
  const lists = rule.matches.reduce<readonly (readonly Buffer[])[]>(
    (made, match) => made.flatMap((before) => alternatives(match).map((each) => [...before, ...each])),
    [[]],
  );
  return lists.map((list) => [...list, ...conclude(rule.verdict)]);
}
