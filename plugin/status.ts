import { CniError, ErrorCode, reasonOf } from "../cni/errors";
import { parseStanza } from "../cni/parse-stanza";
import { readClaims } from "../kubernetes/service-account-token";
import type { Call } from "./call";
import type { Host } from "./host/port";
import { decodeBase64, readKubeconfig } from "./kubeconfig";

/** What keeps the kubeconfig from working, as far as it can be told without a request. */
function problem(host: Host, kubeconfig: string): string | undefined {
  const { token, certificate } = readKubeconfig(host, kubeconfig);
  if (token === undefined) return certificate === undefined ? `${kubeconfig} holds no credentials` : undefined;
  const expiry = readClaims(token, (text) => decodeBase64(host, text))?.expiresAt;
  if (expiry === undefined || expiry > Date.now()) return undefined;
  return `the token in ${kubeconfig} expired at ${new Date(expiry).toISOString()}`;
}

/**
 * Ready by default: a failing STATUS keeps the node from becoming ready, and so the installer from repairing it. With
 * `strict-status` a kubeconfig or a token that cannot work is reported.
 * @throws CniError 50
 */
export function status({ host, config }: Call): string {
  if (config.source["strict-status"] !== true) return "";
  const { kubernetes } = parseStanza(config.source, config.name);
  let found: string | undefined;
  try {
    found = problem(host, kubernetes.kubeconfig);
  } catch (error) {
    found = reasonOf(error);
  }
  if (found !== undefined) throw new CniError(ErrorCode.notAvailable, found);
  return "";
}
