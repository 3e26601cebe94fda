import type { RuleSet } from "../cni/redirect/rules";
import { FAMILIES, type Family } from "../cni/subnets";
import { Errno, SystemError } from "../host/errno";
import { creationBatch, replacementBatch } from "./batch";
import { messages, readNative32 } from "./codec";
import { findTable } from "./readback";
import type { Netfilter } from "./socket";

const NLMSG_ERROR = 2;

/** Errors of a kernel without nf_tables, its nat chains or its redirect. */
const UNSUPPORTED: readonly number[] = [Errno.ENOENT, Errno.EPROTONOSUPPORT, Errno.EOPNOTSUPP, Errno.EAFNOSUPPORT];

/** Whether an error means that the kernel's nf_tables cannot redirect. */
export function isUnsupported(error: unknown): boolean {
  return error instanceof SystemError && UNSUPPORTED.includes(error.errno);
}

/** The first failure among the kernel's replies, 0 for success, undefined without either. */
function outcome(replies: readonly Uint8Array[]): number | undefined {
  let acknowledged: number | undefined;
  for (const reply of replies.flatMap((datagram) => [...messages(datagram)])) {
    if (reply.type !== NLMSG_ERROR) continue;
    const error = -readNative32(reply.payload);
    if (error !== 0) return error;
    acknowledged = 0;
  }
  return acknowledged;
}

function transact(netfilter: Netfilter, request: Uint8Array): number {
  return outcome(netfilter(request)) ?? Errno.EAGAIN;
}

/** Families with rules of an earlier ADD, but not of this one. */
function unwantedFamilies(netfilter: Netfilter, sets: readonly RuleSet[]): readonly Family[] {
  return FAMILIES.filter(
    (family) => !sets.some((set) => set.family === family) && findTable(netfilter, family) !== undefined,
  );
}

/**
 * Programs the rules in the namespace of the socket, all families in one transaction, and replaces rules of an earlier
 * ADD.
 * @throws SystemError
 */
export function applyNative(netfilter: Netfilter, sets: readonly RuleSet[]): void {
  let error = transact(netfilter, creationBatch(sets));
  if (error === Errno.EEXIST) error = transact(netfilter, replacementBatch(sets, unwantedFamilies(netfilter, sets)));
  if (error !== 0) throw new SystemError("program the redirect in nftables", error);
}
