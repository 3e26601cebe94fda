import { CniError, ErrorCode } from "../cni/errors";
import { parseStanza } from "../cni/parse-stanza";
import { previousResult } from "../cni/result";
import type { Call } from "./call";
import { compareRules } from "./modes";
import { inNamespace } from "./namespace";

/**
 * Compares the rules in a pod's namespace with those that ADD programmed. It does not send requests: since the ADD,
 * annotations may have been edited, the pod may have been deleted, and the API server may be down. A runtime calls
 * CHECK when it restarts, and releases the pod's address if CHECK fails. Without any of our rules, CHECK succeeds: ADD
 * may not have programmed any, for instance if linkerd-init does.
 */
export function check(call: Call): string {
  const { host, config } = call;
  if (previousResult(config.source) === undefined) throw new CniError(ErrorCode.config, "CHECK needs a prevResult");
  const { linkerd } = parseStanza(config.source, config.name);
  const { difference } = inNamespace(call, () => compareRules(host, linkerd));
  if (difference !== undefined) throw new CniError(ErrorCode.rulesDiffer, difference);
  return "";
}
