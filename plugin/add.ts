import { redirectRules } from "../cni/redirect/rules";
import { passResult, previousResult } from "../cni/result";
import type { Call, World } from "./call";
import { decideCall } from "./decide-call";
import { inNamespace } from "./namespace";
import { applyNative } from "./netlink/apply";

/** Redirects the traffic of a meshed pod and passes the previous plugin's result on. */
export async function add(call: Call, world: World): Promise<string> {
  const result = passResult(previousResult(call.config.source), call.version);
  const decision = await decideCall(call, world);
  if (decision.kind === "redirect") {
    const sets = redirectRules(decision.options);
    inNamespace(world, call.target.netns, () => applyNative(world.kernel, sets));
  }
  return JSON.stringify(result);
}
