import { readPodName } from "../cni/environment";
import { type Learned, type PassedPod, passesAtOnce, settle } from "../cni/known";
import { passedAnnotations } from "../cni/network-config";
import { logLevel, parseStanza } from "../cni/parse-stanza";
import type { SkipReason } from "../cni/pod";
import { redirectRules } from "../cni/redirect/rules";
import { resultText } from "../cni/result";
import type { Stanza } from "../cni/stanza";
import type { ApiServer } from "../kubernetes/api-server";
import { get } from "./api/request";
import type { Call } from "./call";
import { readKubeconfig } from "./kubeconfig";
import { type Log, lineLog } from "./log";
import { lookUp } from "./lookup";
import { applyRules } from "./modes";
import { inNamespace } from "./namespace";

/** Milliseconds for all requests of one call together. */
const LOOKUP_DEADLINE_MS = 5000;

/** What is known about a pod; reads the kubeconfig only where a request is made. */
function learn({ host, record }: Call, passed: PassedPod, stanza: Stanza): Learned {
  const { kubeconfig } = stanza.kubernetes;
  const begin = host.elapsed();
  let server: ApiServer | undefined;
  return lookUp({ ...passed, policy: stanza["pod-lookup"], kubeconfig }, (path) => {
    server ??= readKubeconfig(host, kubeconfig);
    record.countRequest();
    return get(host, server, path, Math.max(1, LOOKUP_DEADLINE_MS - (host.elapsed() - begin)));
  });
}

function skip({ record }: Call, reason: SkipReason, log: Log): void {
  record.note({ decision: "skip", reason });
  log("info", `left alone: ${reason}`);
}

/** Redirects the pod's traffic where it is meshed. Nothing has been changed when this fails. */
function redirect(call: Call): void {
  const { host, env, config, record } = call;
  const log = lineLog(host, logLevel(config.source));
  const pod = readPodName(env);
  if (pod === undefined) {
    skip(call, "not a pod", log);
    return;
  }
  record.note({ pod: `${pod.namespace}/${pod.name}` });
  const passed = { pod, annotations: passedAnnotations(config) };
  const passes = passesAtOnce(passed, config.source);
  if (passes !== undefined) {
    skip(call, passes, log);
    return;
  }

  const stanza = parseStanza(config.source, config.name);
  const learned = record.time("lookupMs", () => learn(call, passed, stanza));
  if (learned.kind === "pod" && learned.because !== undefined) {
    record.note({ reason: learned.because });
    log("warn", `deciding by the annotations alone: ${learned.because}`);
  }

  const decision = settle(learned, stanza);
  if (decision.kind === "skip") {
    skip(call, decision.reason, log);
    return;
  }
  record.note({ decision: "redirect" });
  const { options } = decision;
  const mode = record.time("rulesMs", () => {
    const sets = redirectRules(options);
    return inNamespace(host, call.target.netns, () => applyRules(host, stanza.linkerd, sets, log));
  });
  record.note({ mode });
  log("info", `redirected, by ${mode}`);
}

/** Redirects the traffic of a meshed pod and passes the previous plugin's result on. */
export function add(call: Call): string {
  const result = resultText(call.config, call.version);
  redirect(call);
  return result;
}
