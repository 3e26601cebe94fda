/** Reads from the kernel what nat chains and rules there are in the namespace of the calling thread. */
import type { Family } from "../../cni/subnets";
import { Errno, SystemError } from "../system-error";
import { NFPROTO, NFTA_CHAIN, NFTA_HOOK, NFTA_RULE, NFTA_TABLE_NAME, SUBSYSTEM, TABLE } from "./batch";
import { attributeList, attributes, message, messages } from "./codec";
import type { Kernel } from "./port";

const GET = { table: (SUBSYSTEM << 8) | 1, chain: (SUBSYSTEM << 8) | 4, rule: (SUBSYSTEM << 8) | 7 };
const REQUEST = 0x1;
const DUMP = 0x300;
const NLMSG_ERROR = 2;
const FAMILY_HEADER = 4;

/** A base chain of type nat: where it hangs, and its rules. */
export interface NatChain {
  readonly table: string;
  readonly name: string;
  readonly hook: number;
  readonly priority: number;
  /** Each rule's expressions as the kernel lists them. */
  readonly rules: readonly (readonly Buffer[])[];
}

type Attributes = ReadonlyMap<number, Buffer>;

/**
 * A well-formed request to list is invalid only where the kernel has no nf_tables (nfnetlink.c, `nfnetlink_rcv_msg`: no
 * such subsystem); to a batch it answers then that it does not support it.
 */
const refusal = (errno: number): SystemError =>
  new SystemError("list the rules", errno === Errno.EINVAL ? Errno.EOPNOTSUPP : errno);

function dump(kernel: Kernel, type: number, family: Family): readonly Attributes[] {
  const request = message({ type, flags: REQUEST | DUMP, sequence: 1, family: NFPROTO[family], attributes: [] });
  const found: Attributes[] = [];
  for (const reply of kernel.exchange(request).flatMap((datagram) => [...messages(datagram)])) {
    if (reply.type === NLMSG_ERROR) throw refusal(-reply.payload.readInt32LE(0));
    if (reply.type >> 8 === SUBSYSTEM) found.push(attributes(reply.payload.subarray(FAMILY_HEADER)));
  }
  return found;
}

function textOf(found: Attributes, type: number): string {
  return found.get(type)?.toString("utf8").replace(/\0.*$/, "") ?? "";
}

function expressionsOf(rule: Attributes): readonly Buffer[] {
  return [...attributeList(rule.get(NFTA_RULE.expressions) ?? Buffer.alloc(0))].map(([, expression]) => expression);
}

/** The nat chains of a family in the order the kernel lists them: oldest table first. */
export function natChains(kernel: Kernel, family: Family): readonly NatChain[] {
  const rules = dump(kernel, GET.rule, family);
  return dump(kernel, GET.chain, family)
    .filter((chain) => textOf(chain, NFTA_CHAIN.type) === "nat")
    .map((chain) => {
      const table = textOf(chain, NFTA_CHAIN.table);
      const name = textOf(chain, NFTA_CHAIN.name);
      const hook = attributes(chain.get(NFTA_CHAIN.hook) ?? Buffer.alloc(0));
      const mine = rules.filter(
        (rule) => textOf(rule, NFTA_RULE.table) === table && textOf(rule, NFTA_RULE.chain) === name,
      );
      return {
        table,
        name,
        hook: hook.get(NFTA_HOOK.number)?.readInt32BE(0) ?? -1,
        priority: hook.get(NFTA_HOOK.priority)?.readInt32BE(0) ?? 0,
        rules: mine.map(expressionsOf),
      };
    });
}

/** Whether this plugin's table is there. */
export function hasTable(kernel: Kernel, family: Family): boolean {
  return dump(kernel, GET.table, family).some((table) => textOf(table, NFTA_TABLE_NAME) === TABLE);
}
