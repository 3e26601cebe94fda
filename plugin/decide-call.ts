import { type Decision, decide } from "../cni/decide";
import { type PodName, readPodName } from "../cni/environment";
import { passedAnnotations } from "../cni/network-config";
import { ownPods, parseStanza } from "../cni/parse-stanza";
import { isDaemonSetPod } from "../cni/pod";
import type { Stanza } from "../cni/stanza";
import { loadKubeconfig } from "../kubernetes/kubeconfig";
import type { Call, World } from "./call";
import { lineLog } from "./log";
import { type Learned, lookUp } from "./lookup";
import { requireOtherNamespace } from "./namespace";

/** The installer's own pods always pass: with a broken stanza or token they are what mends it. */
function isOwnPod(call: Call, pod: PodName): boolean {
  const own = ownPods(call.config.source);
  return own !== undefined && isDaemonSetPod(pod, own);
}

async function learn(call: Call, pod: PodName, stanza: Stanza, world: World): Promise<Learned> {
  const { kubeconfig } = stanza.kubernetes;
  const question = { pod, annotations: passedAnnotations(call.config), policy: stanza["pod-lookup"], kubeconfig };
  return lookUp(question, () => world.connect(loadKubeconfig(kubeconfig)));
}

function settle(learned: Learned, stanza: Stanza): Decision {
  if (learned.kind === "skip") return learned;
  const decision = decide(learned.pod, learned.around, stanza);
  return decision.kind === "redirect" && stanza.linkerd.simulate ? { kind: "skip", reason: "simulated" } : decision;
}

/** What an ADD or CHECK has to do. Nothing has been changed when this fails. */
export async function decideCall(call: Call, world: World): Promise<Decision> {
  requireOtherNamespace(call.target.netns, world.identify);
  const pod = readPodName(call.env);
  if (pod === undefined) return { kind: "skip", reason: "not a pod" };
  if (isOwnPod(call, pod)) return { kind: "skip", reason: "own pod" };
  const stanza = parseStanza(call.config.source, call.config.name);
  const log = lineLog(world.warn, stanza.log_level);
  const learned = await learn(call, pod, stanza, world);
  if (learned.kind === "pod" && learned.because !== undefined) {
    log("warn", `deciding by the annotations alone: ${learned.because}`);
  }
  const decision = settle(learned, stanza);
  log("info", decision.kind === "skip" ? `left alone: ${decision.reason}` : "meshed");
  return decision;
}
