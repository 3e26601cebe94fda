import { CniError, ErrorCode } from "../cni/errors";
import { redirectRules } from "../cni/redirect/rules";
import { previousResult } from "../cni/result";
import type { Call, World } from "./call";
import { decideCall } from "./decide-call";
import { applierFor } from "./modes";
import { inNamespace } from "./namespace";

/** Compares the rules in force in a meshed pod's namespace with those an ADD would set now. */
export async function check(call: Call, world: World): Promise<string> {
  if (previousResult(call.config.source) === undefined) {
    throw new CniError(ErrorCode.config, "CHECK needs a prevResult");
  }
  const redirect = await decideCall(call, world);
  if (redirect === undefined) return "";
  const { linkerd, log } = redirect;
  const sets = redirectRules(redirect.options);
  const applier = applierFor({ linkerd, world, log });
  const difference = inNamespace(world, call.target.netns, () => applier.difference(sets));
  if (difference !== undefined) throw new CniError(ErrorCode.rulesDiffer, difference);
  return "";
}
