import { type Decision, decide } from "../cni/decide";
import { readPodName } from "../cni/environment";
import { evidenceFromAnnotations, type PassedPod, skipWithoutLookup } from "../cni/evidence";
import { type Gathered, type Get, gatherEvidence } from "../cni/lookup";
import { passedAnnotations } from "../cni/network-config";
import { readStanza } from "../cni/parse-stanza";
import type { RedirectOptions } from "../cni/redirect/options";
import { type RuleSet, redirectRules } from "../cni/redirect/rules";
import { resultText } from "../cni/result";
import type { Stanza } from "../cni/stanza";
import { getByInstaller } from "../kubernetes/lookup-client";
import { creationBatch } from "../netlink/batch";
import type { Call } from "./call";
import { isLinkerds, isUninstalled, type LeftBehind } from "./left-behind";
import { type Log, lineLog } from "./log";
import { applyRules, isOwnMode } from "./modes";
import { inNamespace } from "./namespace";

/** Milliseconds for all requests of one call. */
const LOOKUP_DEADLINE_MS = 5000;

/** Rules, and what creates them in mode native if that was made ahead. */
interface Rules {
  readonly sets: readonly RuleSet[];
  readonly batch?: Uint8Array | undefined;
}

/**
 * The rules that a pod's annotations ask for, made while the pod is looked up: its object nearly always asks for the same,
 * and to compute them takes about as long as the answer.
 */
class RulesAhead {
  private made: (Rules & { readonly options: string }) | undefined;

  /** Does not throw: what is wrong with the annotations is said when the pod is decided about. */
  make(passed: PassedPod, stanza: Stanza): void {
    if (this.made !== undefined) return;
    try {
      const evidence = evidenceFromAnnotations(passed, stanza["pod-lookup"]);
      const decision = evidence && decide(evidence.pod, evidence.around, stanza);
      if (decision?.kind !== "redirect") return;
      const sets = redirectRules(decision.options);
      this.made = {
        options: JSON.stringify(decision.options),
        sets,
        batch: isOwnMode(stanza.linkerd["iptables-mode"]) ? creationBatch(sets) : undefined,
      };
    } catch {
      this.made = undefined;
    }
  }

  of(options: RedirectOptions): Rules {
    if (this.made?.options === JSON.stringify(options)) return this.made;
    return { sets: redirectRules(options) };
  }
}

/** Looks up through the installer, within the time of one call. */
function lookups(call: Call, { "own-pods": ownPods }: Stanza, meanwhile: () => void): Get {
  const { host, record } = call;
  const { runDir } = call.config;
  const until = host.elapsed() + LOOKUP_DEADLINE_MS;
  return (path, isNeeded) => {
    record.countRequest();
    const waits = isNeeded && !isUninstalled(call);
    const answer = getByInstaller(host, path, { runDir, until, isNeeded: waits, ownPods, meanwhile });
    record.note({ lookup: "installer" });
    return answer;
  };
}

/** Decides what to do for the pod of a call. Only reads. */
function decideCall(
  call: Call,
  stanza: Stanza,
  problem: Error | undefined,
  ahead: RulesAhead,
  log: Log,
): Decision | LeftBehind {
  const { env, config, record } = call;
  const pod = readPodName(env);
  if (pod === undefined) return { kind: "skip", reason: "not a pod" };
  record.note({ pod: `${pod.namespace}/${pod.name}` });
  const passed: PassedPod = { pod, annotations: passedAnnotations(config) };

  const reason = skipWithoutLookup(passed, stanza);
  if (reason !== undefined) return { kind: "skip", reason };
  if (isLinkerds(call)) return { kind: "skip", reason: "linkerd's plugin sets the rules" };
  if (problem !== undefined) throw problem;

  const get = lookups(call, stanza, () => ahead.make(passed, stanza));
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

  const ahead = new RulesAhead();
  const decision = decideCall(call, stanza, problem, ahead, log);
  if (decision.kind === "skip") {
    record.note({ decision: "skip", reason: decision.reason });
    log("info", `left alone: ${decision.reason}`);
    return result;
  }

  record.note({ decision: "redirect" });
  const mode = record.time("rulesMs", () => {
    const { sets, batch } = ahead.of(decision.options);
    return inNamespace(call, () => applyRules(host, stanza.linkerd, sets, log, batch));
  });
  record.note({ mode });
  log("info", `redirected, by ${mode}`);
  return result;
}
