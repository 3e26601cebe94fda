import { type Decision, decide } from "../cni/decide";
import { readPodName } from "../cni/environment";
import { CniError, ErrorCode, shortened } from "../cni/errors";
import { evidenceFromAnnotations, type PassedPod, skipWithoutLookup } from "../cni/evidence";
import { type ApiAccess, type Gathered, type Get, gatherEvidence } from "../cni/lookup";
import { passedAnnotations } from "../cni/network-config";
import { readStanza } from "../cni/parse-stanza";
import type { RedirectOptions } from "../cni/redirect/options";
import { type RuleSet, redirectRules } from "../cni/redirect/rules";
import { resultText } from "../cni/result";
import type { Stanza } from "../cni/stanza";
import type { ApiServer } from "../kubernetes/api-server";
import { getByInstaller, InstallerSilent } from "../kubernetes/sync/installer";
import { readKubeconfig } from "../kubernetes/sync/kubeconfig";
import { get } from "../kubernetes/sync/request";
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

/**
 * Looks up through the installer, and directly at the API server if the installer does not answer. Only then is the
 * kubeconfig read.
 */
function apiAccess({ host, config, record }: Call, kubeconfig: string, meanwhile: () => void): ApiAccess {
  const begin = host.elapsed();
  const left = () => Math.max(1, LOOKUP_DEADLINE_MS - (host.elapsed() - begin));
  let fallback: string | undefined;
  let server: ApiServer | undefined;
  const byInstaller = (path: string, silenceMs?: number) => {
    try {
      const answer = getByInstaller(host, path, left(), { meanwhile, runDir: config.runDir, silenceMs });
      record.note({ lookup: "installer" });
      return answer;
    } catch (error) {
      if (!(error instanceof InstallerSilent)) throw error;
      fallback = shortened(error.message);
      record.note({ lookup: "direct", fallback });
      return undefined;
    }
  };
  const direct = (path: string) => {
    server ??= readKubeconfig(host, kubeconfig);
    if (server.token !== undefined || server.certificate !== undefined)
      return get(host, server, path, left(), meanwhile);
    // Without a token only the installer can answer: ask it once more, with all the remaining time, since it may be
    // busy.
    const again = byInstaller(path, left());
    if (again !== undefined) return again;
    const reason = `the installer on this node does not answer: ${fallback}`;
    throw new CniError(
      ErrorCode.tryAgainLater,
      `${reason}; ${kubeconfig} has no credentials to ask the API server with`,
    );
  };
  const answer: Get = (path) => {
    record.countRequest();
    return (fallback === undefined ? byInstaller(path) : undefined) ?? direct(path);
  };
  return { get: answer, credentials: kubeconfig, renewedBy: "the linkerd-cni DaemonSet's pod on this node" };
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

  const { kubeconfig } = stanza.kubernetes;
  const api = apiAccess(call, kubeconfig, () => ahead.make(passed, stanza));
  let gathered: Gathered;
  try {
    gathered = record.time("lookupMs", () => gatherEvidence(passed, stanza["pod-lookup"], api));
  } catch (error) {
    if (isUninstalled(call, kubeconfig)) return { kind: "skip", reason: "uninstalled" };
    throw error;
  }
  const { evidence, unanswered } = gathered;
  if (unanswered !== undefined) {
    record.note({ reason: unanswered });
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
