/**
 * Compares the output of `iptables-save` with what every ADD writes, by comments: CHECK does not know the pod's
 * options. Each rule of our chains has a comment of ours, and each chain its mandatory rules. Modes nft, legacy
 * and plain cannot store more, since their rules equal linkerd's. Rules that others add to the built-in chains are
 * ignored.
 */
import type { Family } from "../subnets";
import { IPTABLES_CHAINS, type IptablesChain, jumpLine, rulesOf } from "./iptables";
import { redirectRules } from "./rules";

const COMMENT = /--comment "?(proxy-init\/[^" ]+)/;

/** The time that older versions of linkerd-init and linkerd's plugin wrote into each comment. */
const TIME = /(--comment "?proxy-init\/[^" ]+)\/\d{10}(?=["\s])/;

/** Comments of a chain's rules for a pod without options, except the redirect, which has several kinds. */
function requiredComments(chain: IptablesChain): readonly string[] {
  const sets = redirectRules({
    ...{ inboundPort: 0, outboundPort: 0, portsToRedirect: [], ipv6: false },
    ...{ skipInboundPorts: [], skipOutboundPorts: [], skipInboundSubnets: [], skipOutboundSubnets: [] },
  });
  const kept = sets.flatMap(chain.rules).filter(({ verdict }) => verdict.kind === "return");
  return kept.map(({ comment }) => comment);
}

function chainDifference(lines: readonly string[], chain: IptablesChain): string | undefined {
  if (!lines.includes(jumpLine(chain))) return `${chain.from}: the jump to ${chain.name} is missing`;
  const rules = rulesOf(lines, chain.name);
  const comments = rules.map((line) => COMMENT.exec(line)?.[1]);
  const added = comments.indexOf(undefined);
  if (added >= 0) return `${chain.name}, rule ${added + 1}: ${JSON.stringify(rules[added])} was added`;
  const missing = requiredComments(chain).find((comment) => !comments.includes(comment));
  if (missing !== undefined) return `${chain.name}: the rule ${missing} is missing`;
  return rules.at(-1)?.includes(" -j REDIRECT ") ? undefined : `${chain.name}: the last rule does not redirect`;
}

/** The first difference between a family's rules from `iptables-save` and those of an ADD. */
export function savedDifference(family: Family, saved: string): string | undefined {
  const lines = saved.split("\n").map((line) => line.replace(TIME, "$1"));
  for (const chain of IPTABLES_CHAINS) {
    const difference = chainDifference(lines, chain);
    if (difference !== undefined) return `${family} nat, ${difference}`;
  }
  return undefined;
}
