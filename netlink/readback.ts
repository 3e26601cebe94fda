/** Reads the nat chains and their rules from the kernel. */
import type { Family } from "../cni/subnets";
import { asciiText } from "../host/bytes";
import { Errno, SystemError } from "../host/errno";
import { NFPROTO, NFTA_CHAIN, NFTA_HOOK, NFTA_RULE, NFTA_TABLE_NAME, SUBSYSTEM, TABLE } from "./batch";
import { attributeList, attributes, message, messages, readNative32, readNumber32 } from "./codec";
import { type Element, elementsOf, listedElements } from "./interval-set";
import type { Netfilter } from "./socket";

const get = (type: number) => (SUBSYSTEM << 8) | type;
const GET = { table: get(1), chain: get(4), rule: get(7), elements: get(13) };
const REQUEST = 0x1;
const DUMP = 0x300;
const NLMSG_ERROR = 2;
const FAMILY_HEADER = 4;
const EMPTY = new Uint8Array(0);

/** A rule as the kernel lists it. */
export interface ListedRule {
  readonly expressions: readonly Uint8Array[];
  readonly userdata: Uint8Array;
}

/** A base chain of type nat: its hook, and its rules. */
export interface NatChain {
  readonly table: string;
  readonly name: string;
  readonly hook: number;
  readonly priority: number;
  readonly rules: readonly ListedRule[];
}

type Attributes = ReadonlyMap<number, Uint8Array>;

/**
 * A kernel without nf_tables calls a well-formed request to list invalid (nfnetlink.c, `nfnetlink_rcv_msg`: no such
 * subsystem), and a batch unsupported.
 */
const refusal = (errno: number): SystemError =>
  new SystemError("list the rules", errno === Errno.EINVAL ? Errno.EOPNOTSUPP : errno);

function dump(
  netfilter: Netfilter,
  type: number,
  family: Family,
  of: readonly Uint8Array[] = [],
): readonly Attributes[] {
  const request = message({ type, flags: REQUEST | DUMP, sequence: 1, family: NFPROTO[family], attributes: of });
  const found: Attributes[] = [];
  for (const reply of netfilter(request).flatMap((datagram) => [...messages(datagram)])) {
    if (reply.type === NLMSG_ERROR) throw refusal(-readNative32(reply.payload));
    if (reply.type >> 8 === SUBSYSTEM) found.push(attributes(reply.payload.subarray(FAMILY_HEADER)));
  }
  return found;
}

const textOf = (found: Attributes, type: number) => asciiText(found.get(type) ?? EMPTY);

function listedRule(rule: Attributes): ListedRule {
  const expressions = [...attributeList(rule.get(NFTA_RULE.expressions) ?? EMPTY)].map(([, expression]) => expression);
  return { expressions, userdata: rule.get(NFTA_RULE.userdata) ?? EMPTY };
}

/** The nat chains of a family in the order the kernel lists them: oldest table first. */
export function natChains(netfilter: Netfilter, family: Family): readonly NatChain[] {
  const rules = dump(netfilter, GET.rule, family);
  return dump(netfilter, GET.chain, family)
    .filter((chain) => textOf(chain, NFTA_CHAIN.type) === "nat")
    .map((chain) => {
      const table = textOf(chain, NFTA_CHAIN.table);
      const name = textOf(chain, NFTA_CHAIN.name);
      const hook = attributes(chain.get(NFTA_CHAIN.hook) ?? EMPTY);
      const mine = rules.filter(
        (rule) => textOf(rule, NFTA_RULE.table) === table && textOf(rule, NFTA_RULE.chain) === name,
      );
      return {
        table,
        name,
        hook: readNumber32(hook.get(NFTA_HOOK.number)) ?? -1,
        priority: readNumber32(hook.get(NFTA_HOOK.priority)) ?? 0,
        rules: mine.map(listedRule),
      };
    });
}

/** Names of all chains of a family, of whatever table and type. */
export function chainNames(netfilter: Netfilter, family: Family): readonly string[] {
  return dump(netfilter, GET.chain, family).map((chain) => textOf(chain, NFTA_CHAIN.name));
}

/** The elements of a set of this plugin's table. */
export function setElements(netfilter: Netfilter, family: Family, name: string): readonly Element[] {
  return dump(netfilter, GET.elements, family, elementsOf(TABLE, name)).flatMap(listedElements);
}

/** Whether this plugin's table exists. */
export function hasTable(netfilter: Netfilter, family: Family): boolean {
  return dump(netfilter, GET.table, family).some((table) => textOf(table, NFTA_TABLE_NAME) === TABLE);
}
