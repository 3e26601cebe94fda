/**
 * Compares the output of `iptables-save` with what the rules say about themselves: each has a comment that tells its
 * purpose, and a chain of ours has a known first and last part. Modes nft, legacy and plain have no room for more, since
 * their rules equal linkerd's. Rules that others add to the built-in chains do not count.
 */
import { parsePorts } from "../ports";
import { type Family, parseSubnet } from "../subnets";
import { IPTABLES_CHAINS, type IptablesChain, jumpLine, ruleLine, rulesOf } from "./iptables";
import type { Match, Rule, Verdict } from "./rules";

const COMMENT = /--comment "?proxy-init\/([^" ]+)/;
const leave: Verdict = { kind: "return" };

/** A number behind a flag of the line, for what a comment does not tell. */
function numberAfter(line: string, flag: string): number {
  return Number(new RegExp(`${flag} (\\d+)`).exec(line)?.[1]);
}

/** What a comment tells: beginnings of comments, and the rule that one with that beginning and rest is for. */
const kinds: readonly (readonly [
  string,
  (rest: string, line: string) => Pick<Rule, "matches" | "verdict"> | undefined,
])[] = [
  ["ignore-port-", (rest) => ignored(portsMatch(rest))],
  ["ignore-subnet-", (rest) => ignored(subnetMatch("source", rest))],
  ["ignore-outbound-subnet-", (rest) => ignored(subnetMatch("destination", rest))],
  ["ignore-proxy-user-id", (_, line) => ignored({ kind: "uid", id: numberAfter(line, "--uid-owner") })],
  ["ignore-proxy-group-id", (_, line) => ignored({ kind: "gid", id: numberAfter(line, "--gid-owner") })],
  ["ignore-loopback", () => ignored({ kind: "out-interface", name: "lo" })],
  ["redirect-all-", (_, line) => redirected({ kind: "tcp" }, line)],
  ["redirect-port-", (rest, line) => redirected({ kind: "tcp-port", port: Number.parseInt(rest, 10) }, line)],
];

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

const ignored = (match: Match | undefined) => match && { matches: [match], verdict: leave };
const redirected = (match: Match, line: string) => ({
  matches: [match],
  verdict: { kind: "redirect", port: numberAfter(line, "--to-ports") } as const,
});

/** What a line should be by its own comment; undefined where it is none of ours. */
function shouldBe(line: string, chain: IptablesChain): string | undefined {
  const text = COMMENT.exec(line)?.[1] ?? "";
  const [beginning, read] = kinds.find(([each]) => text.startsWith(each)) ?? ["", () => undefined];
  const rule = read(text.slice(beginning.length), line);
  return rule && ruleLine(chain.name, { ...rule, comment: `proxy-init/${text}` });
}

/** Beginnings of comments that each chain has, the last one at its end. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  PROXY_INIT_REDIRECT: ["redirect-"],
  PROXY_INIT_OUTPUT: ["ignore-loopback", "redirect-all-outgoing"],
};

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
  const comments = rules.map((line) => COMMENT.exec(line)?.[1] ?? "");
  const required = REQUIRED[chain.name] ?? [];
  const missing = required.find((beginning) => !comments.some((comment) => comment.startsWith(beginning)));
  if (missing !== undefined) return `${chain.name}: the rule proxy-init/${missing} is missing`;
  const last = required.at(-1) ?? "";
  return comments.at(-1)?.startsWith(last) ? undefined : `${chain.name}: the rule proxy-init/${last} is not the last`;
}

/** The time at which linkerd-init and linkerd's plugin set the rules, which older versions of both wrote into each comment. */
const TIME = /(--comment "?proxy-init\/[^" ]+)\/\d{10}(?=["\s])/;

/** The first difference between what `iptables-save` printed of a family and what its rules say of themselves. */
export function savedDifference(family: Family, saved: string): string | undefined {
  const lines = saved.split("\n").map((line) => line.replace(TIME, "$1"));
  for (const chain of IPTABLES_CHAINS) {
    const difference = jumpDifference(lines, chain) ?? rulesDifference(lines, chain);
    if (difference !== undefined) return `${family} nat, ${difference}`;
  }
  return undefined;
}
