import { CniError, ErrorCode, reasonOf } from "../cni/errors";
import { readStanza } from "../cni/parse-stanza";
import type { Call } from "./call";
import { isUninstalled } from "./left-behind";
import { modeProblem } from "./modes";

/**
 * Ready by default: while STATUS fails, the node is not ready, and the installer cannot start to repair it. With
 * `strict-status`, an invalid stanza, or a mode that cannot work, is an error.
 * @throws CniError 50
 */
export function status(call: Call): string {
  const { host, config } = call;
  const { stanza, problem } = readStanza(config.source, config.name);
  if (!stanza["strict-status"] || isUninstalled(call)) return "";
  if (problem !== undefined) throw problem;
  let found: string | undefined;
  try {
    found = modeProblem(host, stanza.linkerd);
  } catch (error) {
    found = reasonOf(error);
  }
  if (found !== undefined) throw new CniError(ErrorCode.notAvailable, found);
  return "";
}
