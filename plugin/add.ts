import { redirectRules } from "../cni/redirect/rules";
import { resultText } from "../cni/result";
import type { Call, World } from "./call";
import { decideCall, type Redirect } from "./decide-call";
import { applierFor } from "./modes";
import { inNamespace } from "./namespace";

function program({ options, linkerd, log }: Redirect, call: Call, world: World): void {
  const sets = redirectRules(options);
  const applier = applierFor({ linkerd, world, log });
  inNamespace(world, call.target.netns, () => applier.apply(sets));
  const { mode } = applier;
  call.record.note({ mode });
  log("info", `redirected, by ${mode}`);
}

/** Redirects the traffic of a meshed pod and passes the previous plugin's result on. */
export async function add(call: Call, world: World): Promise<string> {
  const result = resultText(call.config, call.version);
  const redirect = await decideCall(call, world);
  if (redirect !== undefined) await call.record.time("rulesMs", () => program(redirect, call, world));
  return result;
}
