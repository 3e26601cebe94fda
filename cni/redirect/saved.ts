/**
 * Compares the output of `iptables-save` with the rules' own comments: each comment describes its rule, and each of our
 * chains has mandatory rules. Modes nft, legacy and plain cannot store more, since their rules equal linkerd's. Rules
 * that others add to the built-in chains are ignored.
 */
import { parsePorts } from "../ports";
import { type Family, parseSubnet } from "../subnets";
import { IPTABLES_CHAINS, type IptablesChain, jumpLine, ruleLine, rulesOf } from "./iptables";
import { type Match, RULE_KINDS, type RuleKind, redirectRules, ruleOf } from "./rules";

const COMMENT = /--comment "?(proxy-init\/[^" ]+)/;

const commentOf = (line: string): string => COMMENT.exec(line)?.[1] ?? "";

/** The number after a flag of the line, for values that the comment does not contain. */
function numberAfter(line: string, flag: string): number {
  return Number(new RegExp(`${flag} (\\d+)`).exec(line)?.[1]);
}

/** The match of a rule, from the text at the star of its comment, or from its line if the comment has no star. */
const matchOf: { readonly [K in Match["kind"]]: (text: string, line: string) => Match | undefined } = {
  tcp: () => ({ kind: "tcp" }),
  "tcp-port": (text) => ({ kind: "tcp-port", port: Number.parseInt(text, 10) }),
  "tcp-ports": portsMatch,
  source: (text) => subnetMatch("source", text),
  destination: (text) => subnetMatch("destination", text),
  uid: (_, line) => ({ kind: "uid", id: numberAfter(line, "--uid-owner") }),
  gid: (_, line) => ({ kind: "gid", id: numberAfter(line, "--gid-owner") }),
  "out-interface": () => ({ kind: "out-interface", name: "lo" }),
};

function portsMatch(list: string): Match | undefined {
  try {
    const refuse = (item: string) => {
      throw new Error(item);
    };
    return { kind: "tcp-ports", ports: parsePorts(list.replaceAll(":", "-"), refuse) };
  } catch {
    return undefined;
  }
}

function subnetMatch(kind: "source" | "destination", text: string): Match | undefined {
  const subnet = parseSubnet(text);
  return subnet && { kind, subnets: [subnet] };
}

/** The line that a rule's comment describes; undefined if the rule is not ours. */
function shouldBe(line: string, chain: IptablesChain): string | undefined {
  const comment = commentOf(line);
  for (const kind of Object.keys(RULE_KINDS) as RuleKind[]) {
    const found = new RegExp(`^proxy-init/${kind.replace("*", "(.+)")}$`).exec(comment);
    if (found === null) continue;
    const [matched, verdict] = RULE_KINDS[kind];
    const match = matchOf[matched](found[1] ?? "", line);
    const port = numberAfter(line, "--to-ports");
    const rule = match && ruleOf(kind, match, verdict === "return" ? { kind: verdict } : { kind: verdict, port });
    return rule && ruleLine(chain.name, rule);
  }
  return undefined;
}

/** Comments of a chain's rules for a pod without options, except the redirect, which has several kinds. */
function requiredComments(chain: IptablesChain): readonly string[] {
  const sets = redirectRules({
    ...{ inboundPort: 0, outboundPort: 0, portsToRedirect: [], ipv6: false },
    ...{ skipInboundPorts: [], skipOutboundPorts: [], skipInboundSubnets: [], skipOutboundSubnets: [] },
  });
  const kept = sets.flatMap(chain.rules).filter(({ verdict }) => verdict.kind === "return");
  return kept.map(({ comment }) => comment);
}

function jumpDifference(lines: readonly string[], chain: IptablesChain): string | undefined {
  if (lines.includes(jumpLine(chain))) return undefined;
  return `${chain.from}: the jump to ${chain.name} is missing`;
}

function rulesDifference(lines: readonly string[], chain: IptablesChain): string | undefined {
  const rules = rulesOf(lines, chain.name);
  for (const [at, line] of rules.entries()) {
    const wanted = shouldBe(line, chain);
    if (wanted === undefined) return `${chain.name}, rule ${at + 1}: ${JSON.stringify(line)} was added`;
    if (wanted !== line) {
      return `${chain.name}, rule ${at + 1}: is ${JSON.stringify(line)}, should be ${JSON.stringify(wanted)}`;
    }
  }
  const comments = rules.map(commentOf);
  const missing = requiredComments(chain).find((comment) => !comments.includes(comment));
  if (missing !== undefined) return `${chain.name}: the rule ${missing} is missing`;
  return rules.at(-1)?.includes(" -j REDIRECT ") ? undefined : `${chain.name}: the last rule does not redirect`;
}

/** The time that older versions of linkerd-init and linkerd's plugin wrote into each comment. */
const TIME = /(--comment "?proxy-init\/[^" ]+)\/\d{10}(?=["\s])/;

/** The first difference between a family's rules from `iptables-save` and their comments. */
export function savedDifference(family: Family, saved: string): string | undefined {
  const lines = saved.split("\n").map((line) => line.replace(TIME, "$1"));
  for (const chain of IPTABLES_CHAINS) {
    const difference = jumpDifference(lines, chain) ?? rulesDifference(lines, chain);
    if (difference !== undefined) return `${family} nat, ${difference}`;
  }
  return undefined;
}
