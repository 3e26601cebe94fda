/**
 * Reads this plugin's tables back from the kernel. Each request names its object, because a container with NET_ADMIN in
 * the pod may have any number of other tables, chains and rules.
 */
import { MAX_ITEMS } from "../cni/lists";
import type { Family } from "../cni/subnets";
import { asciiText } from "../host/bytes";
import { Errno, SystemError } from "../host/errno";
import { NFPROTO, NFTA_CHAIN, NFTA_HOOK, NFTA_RULE, NFTA_TABLE, SUBSYSTEM, TABLE } from "./batch";
import { attributeList, attributes, message, messages, type Received, readNative32, readNumber32, text } from "./codec";
import { type Element, elementsOf, listedElements } from "./interval-set";
import { ListTooLong, type Netfilter } from "./socket";

const get = (type: number) => (SUBSYSTEM << 8) | type;
const GET = { table: get(1), chain: get(4), rule: get(7), elements: get(13) };
const REQUEST = 0x1;
const DUMP = 0x300;
const DUMP_INTERRUPTED = 0x10;
const NLMSG_ERROR = 2;
const NLMSG_DONE = 3;
const FAMILY_HEADER = 4;
const EMPTY = new Uint8Array(0);

const DORMANT = 0x1;

/** More rules than ADD programs in one chain: one for each redirected port, and few others. */
const MAX_RULES = MAX_ITEMS + 100;
/** A start and an end for each range of two lists, the chart's and the pod's. */
const MAX_ELEMENTS = 4 * MAX_ITEMS;

/**
 * Maximum reads of a list that changes meanwhile. Changes of any table interrupt a read, including the pod's own
 * tables.
 */
const ATTEMPTS = 5;

/** A rule from the kernel. */
export interface ListedRule {
  readonly expressions: readonly Uint8Array[];
  readonly userdata: Uint8Array;
}

/** A chain of this plugin's table, without its rules. */
interface ListedChain {
  /** Undefined if it is not a base chain, which packets reach only by a jump. */
  readonly type: string | undefined;
  readonly hook: number;
  readonly priority: number;
}

type Attributes = ReadonlyMap<number, Uint8Array>;

/**
 * A kernel without nf_tables answers EINVAL to a well-formed list request (nfnetlink.c, `nfnetlink_rcv_msg`: no such
 * subsystem), and EOPNOTSUPP to a batch.
 */
const refusal = (errno: number): SystemError =>
  new SystemError("list the rules", errno === Errno.EINVAL ? Errno.EOPNOTSUPP : errno);

/** Errors that mean absent. Kernels before 4.17 do not know the IPv6 family if it was never used. */
const ABSENT: readonly number[] = [Errno.ENOENT, Errno.EAFNOSUPPORT];

const content = ({ payload }: Received): Attributes => attributes(payload.subarray(FAMILY_HEADER));

function* repliesTo(netfilter: Netfilter, request: Uint8Array): Generator<Received> {
  for (const datagram of netfilter(request)) yield* messages(datagram);
}

/** One object by name; undefined if absent. */
function find(netfilter: Netfilter, type: number, family: Family, name: readonly Uint8Array[]): Attributes | undefined {
  const request = message({ type, flags: REQUEST, sequence: 1, family: NFPROTO[family], attributes: name });
  for (const reply of repliesTo(netfilter, request)) {
    if (reply.type >> 8 === SUBSYSTEM) return content(reply);
    const errno = reply.type === NLMSG_ERROR ? -readNative32(reply.payload) : 0;
    if (ABSENT.includes(errno)) return undefined;
    if (errno !== 0) throw refusal(errno);
  }
  throw refusal(Errno.ENOBUFS);
}

/** Lists the content of an object; empty if the object does not exist. @throws SystemError, ListTooLong */
function list(netfilter: Netfilter, type: number, family: Family, of: readonly Uint8Array[]): readonly Attributes[] {
  const request = message({ type, flags: REQUEST | DUMP, sequence: 1, family: NFPROTO[family], attributes: of });
  for (let attempt = 1; ; attempt++) {
    const found: Attributes[] = [];
    let isInterrupted = false;
    let isWhole = false;
    for (const reply of repliesTo(netfilter, request)) {
      const isEnd = reply.type === NLMSG_ERROR || reply.type === NLMSG_DONE;
      const errno = isEnd ? -readNative32(reply.payload) : 0;
      if (errno !== 0 && !ABSENT.includes(errno)) throw refusal(errno);
      isWhole ||= isEnd;
      isInterrupted ||= (reply.flags & DUMP_INTERRUPTED) !== 0;
      if (reply.type >> 8 === SUBSYSTEM && found.push(content(reply)) > MAX_RULES) {
        throw new ListTooLong(`more than ${MAX_RULES} rules`);
      }
    }
    if (!isWhole) throw refusal(Errno.ENOBUFS);
    // Only changes of this chain or set can corrupt the list, so after some attempts it is used anyway.
    if (!isInterrupted || attempt === ATTEMPTS) return found;
  }
}

const textOf = (found: Attributes, type: number) => asciiText(found.get(type) ?? EMPTY);

/** This plugin's table of a family; undefined if absent. @throws SystemError */
export function findTable(netfilter: Netfilter, family: Family): { readonly isDormant: boolean } | undefined {
  const table = find(netfilter, GET.table, family, [text(NFTA_TABLE.name, TABLE)]);
  return table && { isDormant: ((readNumber32(table.get(NFTA_TABLE.flags)) ?? 0) & DORMANT) !== 0 };
}

/** A chain of any table, by default this plugin's; undefined if absent. @throws SystemError */
export function findChain(
  netfilter: Netfilter,
  family: Family,
  name: string,
  table: string = TABLE,
): ListedChain | undefined {
  const chain = find(netfilter, GET.chain, family, [text(NFTA_CHAIN.table, table), text(NFTA_CHAIN.name, name)]);
  if (chain === undefined) return undefined;
  const hook = attributes(chain.get(NFTA_CHAIN.hook) ?? EMPTY);
  return {
    type: chain.has(NFTA_CHAIN.type) ? textOf(chain, NFTA_CHAIN.type) : undefined,
    hook: readNumber32(hook.get(NFTA_HOOK.number)) ?? -1,
    priority: readNumber32(hook.get(NFTA_HOOK.priority)) ?? 0,
  };
}

function listedRule(rule: Attributes): ListedRule {
  const expressions = [...attributeList(rule.get(NFTA_RULE.expressions) ?? EMPTY)].map(([, expression]) => expression);
  return { expressions, userdata: rule.get(NFTA_RULE.userdata) ?? EMPTY };
}

/** The rules of a chain of this plugin's table. @throws SystemError, ListTooLong */
export function chainRules(netfilter: Netfilter, family: Family, chain: string): readonly ListedRule[] {
  const of = [text(NFTA_RULE.table, TABLE), text(NFTA_RULE.chain, chain)];
  return list(netfilter, GET.rule, family, of).map(listedRule);
}

/** The elements of a set of this plugin's table. @throws SystemError, ListTooLong */
export function setElements(netfilter: Netfilter, family: Family, name: string): readonly Element[] {
  const found: Element[] = [];
  for (const part of list(netfilter, GET.elements, family, elementsOf(TABLE, name))) {
    found.push(...listedElements(part));
    if (found.length > MAX_ELEMENTS) throw new ListTooLong(`a set of more than ${MAX_ELEMENTS} elements`);
  }
  return found;
}
