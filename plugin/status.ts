import { CniError, ErrorCode, reasonOf } from "../cni/errors";
import { readStanza } from "../cni/parse-stanza";
import type { Host } from "../host/port";
import { readClaims } from "../kubernetes/service-account-token";
import { decodeBase64, readKubeconfig } from "../kubernetes/sync/kubeconfig";
import type { Call } from "./call";
import { isUninstalled } from "./left-behind";
import { modeProblem } from "./modes";

/** Why the kubeconfig cannot work, as far as known without a request. */
function kubeconfigProblem(host: Host, kubeconfig: string): string | undefined {
  const { token } = readKubeconfig(host, kubeconfig);
  // The installer then looks pods up; it cannot start while STATUS fails.
  if (token === undefined) return undefined;
  const expiry = readClaims(token, (text) => decodeBase64(host, text))?.expiresAt;
  if (expiry === undefined || expiry > Date.now()) return undefined;
  return `the token in ${kubeconfig} expired at ${new Date(expiry).toISOString()}`;
}

/**
 * Ready by default: while STATUS fails, the node is not ready, and the installer cannot start to repair it. With
 * `strict-status`, a kubeconfig, a token or a mode that cannot work is an error.
 * @throws CniError 50
 */
export function status(call: Call): string {
  const { host, config } = call;
  const { stanza, problem } = readStanza(config.source, config.name);
  if (!stanza["strict-status"] || isUninstalled(call, stanza.kubernetes.kubeconfig)) return "";
  if (problem !== undefined) throw problem;
  let found: string | undefined;
  try {
    found = kubeconfigProblem(host, stanza.kubernetes.kubeconfig) ?? modeProblem(host, stanza.linkerd);
  } catch (error) {
    found = reasonOf(error);
  }
  if (found !== undefined) throw new CniError(ErrorCode.notAvailable, found);
  return "";
}
