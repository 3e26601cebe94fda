import { type Decision, decide } from "../cni/decide";
import { readPodName } from "../cni/environment";
import { CniError, ErrorCode, shortened } from "../cni/errors";
import { type PassedPod, skipWithoutLookup } from "../cni/evidence";
import { type ApiAccess, type Get, gatherEvidence } from "../cni/lookup";
import { passedAnnotations } from "../cni/network-config";
import { readStanza } from "../cni/parse-stanza";
import { redirectRules } from "../cni/redirect/rules";
import { resultText } from "../cni/result";
import type { Stanza } from "../cni/stanza";
import type { ApiServer } from "../kubernetes/api-server";
import { getByInstaller, InstallerSilent } from "../kubernetes/sync/installer";
import { readKubeconfig } from "../kubernetes/sync/kubeconfig";
import { get } from "../kubernetes/sync/request";
import type { Call } from "./call";
import { type Log, lineLog } from "./log";
import { applyRules } from "./modes";
import { inNamespace } from "./namespace";

/** Milliseconds for all requests of one call. */
const LOOKUP_DEADLINE_MS = 5000;

/**
 * Looks up through the installer, and directly at the API server if the installer does not answer. Only then is the
 * kubeconfig read.
 */
function apiAccess({ host, record }: Call, kubeconfig: string): ApiAccess {
  const begin = host.elapsed();
  const left = () => Math.max(1, LOOKUP_DEADLINE_MS - (host.elapsed() - begin));
  let fallback: string | undefined;
  let server: ApiServer | undefined;
  const byInstaller = (path: string, silenceMs?: number) => {
    try {
      const answer = getByInstaller(host, path, left(), silenceMs);
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
    if (server.token !== undefined || server.certificate !== undefined) return get(host, server, path, left());
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
function decideCall(call: Call, stanza: Stanza, problem: Error | undefined, log: Log): Decision {
  const { env, config, record } = call;
  const pod = readPodName(env);
  if (pod === undefined) return { kind: "skip", reason: "not a pod" };
  record.note({ pod: `${pod.namespace}/${pod.name}` });
  const passed: PassedPod = { pod, annotations: passedAnnotations(config) };

  const reason = skipWithoutLookup(passed, stanza);
  if (reason !== undefined) return { kind: "skip", reason };
  if (problem !== undefined) throw problem;

  const { evidence, unanswered } = record.time("lookupMs", () =>
    gatherEvidence(passed, stanza["pod-lookup"], apiAccess(call, stanza.kubernetes.kubeconfig)),
  );
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
