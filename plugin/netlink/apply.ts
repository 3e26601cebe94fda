import type { RuleSet } from "../../cni/redirect/rules";
import { FAMILIES, type Family } from "../../cni/subnets";
import { Errno, SystemError } from "../system-error";
import { creationBatch, replacementBatch } from "./batch";
import { messages } from "./codec";
import type { Kernel } from "./port";

const NLMSG_ERROR = 2;

/** The first failure among the kernel's replies, 0 for success, undefined where it said neither. */
function outcome(replies: readonly Uint8Array[]): number | undefined {
  let acknowledged: number | undefined;
  for (const reply of replies.flatMap((datagram) => [...messages(datagram)])) {
    if (reply.type !== NLMSG_ERROR) continue;
    const error = -reply.payload.readInt32LE(0);
    if (error !== 0) return error;
    acknowledged = 0;
  }
  return acknowledged;
}

function transact(kernel: Kernel, request: Uint8Array): number {
  return outcome(kernel.exchange(request)) ?? Errno.EAGAIN;
}

/** Families that an earlier ADD set rules for and this one does not. */
function unwantedFamilies(kernel: Kernel, sets: readonly RuleSet[]): readonly Family[] {
  const { hasTable } = require("./readback") as typeof import("./readback");
  return FAMILIES.filter((family) => !sets.some((set) => set.family === family) && hasTable(kernel, family));
}

/**
 * Programs the rules in the namespace the calling thread is in, all families in one transaction. What an earlier ADD
 * left is replaced.
 * @throws SystemError
 */
export function applyNative(kernel: Kernel, sets: readonly RuleSet[]): void {
  let error = transact(kernel, creationBatch(sets));
  if (error === Errno.EEXIST) error = transact(kernel, replacementBatch(sets, unwantedFamilies(kernel, sets)));
  if (error !== 0) throw new SystemError("program the redirect in nftables", error);
}
