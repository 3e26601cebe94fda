import { CniError, ErrorCode } from "../cni/errors";
import { redirectRules } from "../cni/redirect/rules";
import { previousResult } from "../cni/result";
import type { Call, World } from "./call";
import { decideCall } from "./decide-call";
import { inNamespace } from "./namespace";
import { firstDifference } from "./netlink/compare";
import { natChains } from "./netlink/readback";

/** Compares the rules in force in a meshed pod's namespace with those an ADD would set now. */
export async function check(call: Call, world: World): Promise<string> {
  if (previousResult(call.config.source) === undefined) {
    throw new CniError(ErrorCode.config, "CHECK needs a prevResult");
  }
  const decision = await decideCall(call, world);
  if (decision.kind === "skip") return "";
  const sets = redirectRules(decision.options);
  const differences = inNamespace(world, call.target.netns, () =>
    sets.map((set) => firstDifference(set, natChains(world.kernel, set.family))),
  );
  const first = differences.find((difference) => difference !== undefined);
  if (first !== undefined) throw new CniError(ErrorCode.rulesDiffer, first);
  return "";
}
