import { type Decision, decide } from "../cni/decide";
import { type PodName, readPodName } from "../cni/environment";
import { passedAnnotations } from "../cni/network-config";
import { logLevel, ownPods, parseStanza } from "../cni/parse-stanza";
import { hasProxyMark, isDaemonSetPod, type SkipReason } from "../cni/pod";
import type { RedirectOptions } from "../cni/redirect/options";
import type { LinkerdConfig, Stanza } from "../cni/stanza";
import type { ApiRequest } from "../kubernetes/client";
import { loadKubeconfig } from "../kubernetes/kubeconfig";
import type { Call, World } from "./call";
import { type Log, lineLog } from "./log";
import { type Learned, lookUp, podFromAnnotations } from "./lookup";
import { requireOtherNamespace } from "./namespace";
import { rehearse } from "./rehearse";

/** The installer's own pods always pass: with a broken stanza or token they are what mends it. */
function isOwnPod(call: Call, pod: PodName): boolean {
  const own = ownPods(call.config.source);
  return own !== undefined && isDaemonSetPod(pod, own);
}

function learn(call: Call, pod: PodName, stanza: Stanza, world: World): Promise<Learned> {
  const { kubeconfig } = stanza.kubernetes;
  const question = { pod, annotations: passedAnnotations(call.config), policy: stanza["pod-lookup"], kubeconfig };
  const open = () => {
    const server = loadKubeconfig(kubeconfig, world.kubeconfig);
    const transport = world.connect(server, () => rehearse(podFromAnnotations(question), stanza));
    return (request: ApiRequest) => {
      call.record.countRequest();
      return transport(request);
    };
  };
  return call.record.time("lookupMs", () => lookUp(question, open));
}

function settle(learned: Learned, stanza: Stanza): Decision {
  if (learned.kind === "skip") return learned;
  const decision = decide(learned.pod, learned.around, stanza);
  return decision.kind === "redirect" && stanza.linkerd.simulate ? { kind: "skip", reason: "simulated" } : decision;
}

/** A meshed pod: what to redirect, and how. */
export interface Redirect {
  readonly options: RedirectOptions;
  readonly linkerd: LinkerdConfig;
  readonly log: Log;
}

function skip(call: Call, reason: SkipReason, log: Log): undefined {
  call.record.note({ decision: "skip", reason });
  log("info", `left alone: ${reason}`);
}

/** Annotations that name no proxy decide at once: a stanza that is wrong stops meshed pods alone. */
function isUnmeshed({ config }: Call): boolean {
  if (config.source["pod-lookup"] === "api") return false;
  const annotations = passedAnnotations(config);
  return annotations !== undefined && !hasProxyMark(annotations);
}

async function decideForPod(call: Call, pod: PodName, world: World): Promise<Redirect | undefined> {
  const stanza = parseStanza(call.config.source, call.config.name);
  const log = lineLog(world.warn, stanza.log_level);
  const learned = await learn(call, pod, stanza, world);
  if (learned.kind === "pod" && learned.because !== undefined) {
    call.record.note({ reason: learned.because });
    log("warn", `deciding by the annotations alone: ${learned.because}`);
  }
  const decision = settle(learned, stanza);
  if (decision.kind === "skip") return skip(call, decision.reason, log);
  call.record.note({ decision: "redirect" });
  return { options: decision.options, linkerd: stanza.linkerd, log };
}

/** What an ADD or CHECK has to redirect; undefined for nothing. Nothing has been changed when this fails. */
export async function decideCall(call: Call, world: World): Promise<Redirect | undefined> {
  requireOtherNamespace(call.target.netns, world.identify);
  const pod = readPodName(call.env);
  const log = lineLog(world.warn, logLevel(call.config.source));
  if (pod === undefined) return skip(call, "not a pod", log);
  call.record.note({ pod: `${pod.namespace}/${pod.name}` });
  if (isOwnPod(call, pod)) return skip(call, "own pod", log);
  return isUnmeshed(call) ? skip(call, "no proxy", log) : decideForPod(call, pod, world);
}
