import { type PodName, readPodName } from "../cni/environment";
import { type Learned, passesAtOnce, podFromAnnotations, settle } from "../cni/known";
import { passedAnnotations } from "../cni/network-config";
import { logLevel, parseStanza } from "../cni/parse-stanza";
import type { SkipReason } from "../cni/pod";
import type { RedirectOptions } from "../cni/redirect/options";
import type { LinkerdConfig, Stanza } from "../cni/stanza";
import type { ApiRequest } from "../kubernetes/client";
import { loadKubeconfig } from "../kubernetes/kubeconfig";
import type { Call, World } from "./call";
import { type Log, lineLog } from "./log";
import { lookUp } from "./lookup";
import { requireOtherNamespace } from "./namespace";
import { rehearse } from "./rehearse";

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
  const { config } = call;
  const passes = passesAtOnce({ pod, annotations: passedAnnotations(config) }, config.source);
  return passes === undefined ? decideForPod(call, pod, world) : skip(call, passes, log);
}
