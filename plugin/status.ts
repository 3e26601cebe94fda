import { CniError, ErrorCode, reasonOf } from "../cni/errors";
import { parseStanza } from "../cni/parse-stanza";
import { type KubeconfigSource, loadKubeconfig } from "../kubernetes/kubeconfig";
import { readClaims } from "../kubernetes/service-account-token";
import type { Call, World } from "./call";

/** What keeps the kubeconfig from working, as far as it can be told without a request. */
function problem(kubeconfig: string, source: KubeconfigSource, now: Date): string | undefined {
  const { token, certificate } = loadKubeconfig(kubeconfig, source);
  if (token === undefined) return certificate === undefined ? `${kubeconfig} holds no credentials` : undefined;
  const expiry = readClaims(token)?.expiresAt;
  if (expiry === undefined || expiry > now.getTime()) return undefined;
  return `the token in ${kubeconfig} expired at ${new Date(expiry).toISOString()}`;
}

/**
 * Ready by default: a failing STATUS keeps the node from becoming ready, and so the installer from mending it. With
 * `strict-status` a kubeconfig or a token that cannot work is reported.
 * @throws CniError 50
 */
export async function status(call: Call, world: World): Promise<string> {
  if (call.config.source["strict-status"] !== true) return "";
  const { kubernetes } = parseStanza(call.config.source, call.config.name);
  let found: string | undefined;
  try {
    found = problem(kubernetes.kubeconfig, world.kubeconfig, world.now());
  } catch (error) {
    found = reasonOf(error);
  }
  if (found !== undefined) throw new CniError(ErrorCode.notAvailable, found);
  return "";
}
