import { CniError, ErrorCode } from "../cni/errors";
import { parseStanza } from "../cni/parse-stanza";
import { previousResult } from "../cni/result";
import type { Call } from "./call";
import { compareRules } from "./modes";
import { inNamespace } from "./namespace";

/**
 * Compares the rules in force in a pod's namespace with what ADD set there. It asks nobody: annotations may have been
 * edited since, the pod's object be gone and the API server be down, when a runtime calls CHECK at its restart and lets
 * go of the pod's address where it fails. Where there is nothing of ours, ADD set nothing as far as anybody can tell:
 * also a meshed pod has no rules yet where linkerd-init is to set them.
 */
export function check({ host, config, target }: Call): string {
  if (previousResult(config.source) === undefined) throw new CniError(ErrorCode.config, "CHECK needs a prevResult");
  const { linkerd } = parseStanza(config.source, config.name);
  const { difference } = inNamespace(host, target.netns, () => compareRules(host, linkerd));
  if (difference !== undefined) throw new CniError(ErrorCode.rulesDiffer, difference);
  return "";
}
