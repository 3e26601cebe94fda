import { type Decision, decide } from "../cni/decide";
import { readPodName } from "../cni/environment";
import { type PassedPod, skipWithoutLookup } from "../cni/evidence";
import { type Gathered, type Get, gatherEvidence } from "../cni/lookup";
import { passedAnnotations } from "../cni/network-config";
import { readStanza } from "../cni/parse-stanza";
import { redirectRules } from "../cni/redirect/rules";
import { resultText } from "../cni/result";
import type { Stanza } from "../cni/stanza";
import { getByInstaller } from "../kubernetes/lookup-client";
import type { Call } from "./call";
import { isLinkerds, isUninstalled, type LeftBehind } from "./left-behind";
import { type Log, lineLog } from "./log";
import { applyRules } from "./modes";
import { inNamespace } from "./namespace";

/** Milliseconds for all requests of one call. */
const LOOKUP_DEADLINE_MS = 5000;

/** Looks up through the installer, within the time of one call. */
function lookups(call: Call, { "own-pods": ownPods }: Stanza): Get {
  const { host, record } = call;
  const { runDir } = call.config;
  const until = host.elapsed() + LOOKUP_DEADLINE_MS;
  return (path, isNeeded) => {
    record.countRequest();
    const waits = isNeeded && !isUninstalled(call);
    const answer = getByInstaller(host, path, { runDir, until, isNeeded: waits, ownPods });
    record.note({ lookup: "installer" });
    return answer;
  };
}

/** Decides what to do for the pod of a call. Only reads. */
function decideCall(call: Call, stanza: Stanza, problem: Error | undefined, log: Log): Decision | LeftBehind {
  const { env, config, record } = call;
  const pod = readPodName(env);
  if (pod === undefined) return { kind: "skip", reason: "not a pod" };
  record.note({ pod: `${pod.namespace}/${pod.name}` });
  const passed: PassedPod = { pod, annotations: passedAnnotations(config) };

  const reason = skipWithoutLookup(passed, stanza);
  if (reason !== undefined) return { kind: "skip", reason };
  if (isLinkerds(call)) return { kind: "skip", reason: "linkerd's plugin sets the rules" };
  if (problem !== undefined) throw problem;

  const get = lookups(call, stanza);
  let gathered: Gathered;
  try {
    gathered = record.time("lookupMs", () => gatherEvidence(passed, stanza["pod-lookup"], get));
  } catch (error) {
    if (isUninstalled(call)) return { kind: "skip", reason: "uninstalled" };
    throw error;
  }
  const { evidence, unanswered } = gathered;
  if (unanswered !== undefined) {
    record.note({ lookup: "annotations", reason: unanswered });
    log("warn", `deciding by the annotations alone: ${unanswered}`);
  }
  return decide(evidence.pod, evidence.around, stanza);
}

/**
 * Redirects a meshed pod's traffic and passes the previous plugin's result on. A failed call does not change anything.
 */
export function add(call: Call): string {
  const { host, config, version, record } = call;
  const result = resultText(config, version);
  const { stanza, problem } = readStanza(config.source, config.name);
  const log = lineLog(host, stanza.log_level);

  const decision = decideCall(call, stanza, problem, log);
  if (decision.kind === "skip") {
    record.note({ decision: "skip", reason: decision.reason });
    log("info", `left alone: ${decision.reason}`);
    return result;
  }

  record.note({ decision: "redirect" });
  const mode = record.time("rulesMs", () => {
    const sets = redirectRules(decision.options);
    return inNamespace(call, () => applyRules(host, stanza.linkerd, sets, log));
  });
  record.note({ mode });
  log("info", `redirected, by ${mode}`);
  return result;
}
