/** The rules in iptables' format: the text that `iptables-restore` reads and `iptables-save` prints. */
import type { PortRange } from "../ports";
import { formatSubnet, type Subnet } from "../subnets";
import { ignorePorts, type Match, perSubnet, portText, type Rule, type RuleSet, type Verdict } from "./rules";

/** One of our chains, the built-in chain that jumps to it, and the comment on the jump. */
export interface IptablesChain {
  readonly name: string;
  readonly from: string;
  readonly comment: string;
  readonly rules: (set: RuleSet) => readonly Rule[];
}

export const IPTABLES_CHAINS: readonly IptablesChain[] = [
  {
    name: "PROXY_INIT_REDIRECT",
    from: "PREROUTING",
    comment: "proxy-init/install-proxy-init-prerouting",
    rules: (set) => set.inbound,
  },
  {
    name: "PROXY_INIT_OUTPUT",
    from: "OUTPUT",
    comment: "proxy-init/install-proxy-init-output",
    rules: (set) => set.outbound,
  },
];

/** Maximum number of ports in one rule of iptables' multiport; a range counts as two. */
const MAX_SLOTS = 15;

const slots = (range: PortRange) => (range.low === range.high ? 1 : 2);

/** Splits ports into lists that fit single rules. */
export function chunkedPorts(ports: readonly PortRange[]): readonly (readonly PortRange[])[] {
  const made: PortRange[][] = [];
  let room = 0;
  for (const range of ports) {
    if (slots(range) > room) {
      made.push([]);
      room = MAX_SLOTS;
    }
    made.at(-1)?.push(range);
    room -= slots(range);
  }
  return made;
}

/** A rule, split into rules that iptables can hold: a few ports each, or one network. */
function split(rule: Rule): readonly Rule[] {
  const [match] = rule.matches;
  return match?.kind === "tcp-ports" ? chunkedPorts(match.ports).map(ignorePorts) : perSubnet(rule);
}

function subnetText(flag: "-s" | "-d", [subnet]: readonly Subnet[]): string {
  return subnet === undefined || subnet.prefix === 0 ? "" : `${flag} ${formatSubnet(subnet)}`;
}

function matchText(match: Match): string {
  switch (match.kind) {
    case "tcp":
      return "-p tcp";
    case "tcp-port":
      return `-p tcp -m tcp --dport ${match.port}`;
    case "tcp-ports":
      return `-p tcp -m multiport --dports ${match.ports.map(portText).join(",")}`;
    case "source":
      return subnetText("-s", match.subnets);
    case "destination":
      return subnetText("-d", match.subnets);
    case "uid":
      return `-m owner --uid-owner ${match.id}`;
    case "gid":
      return `-m owner --gid-owner ${match.id}`;
    case "out-interface":
      return `-o ${match.name}`;
  }
}

function verdictText(verdict: Verdict): string {
  return verdict.kind === "return" ? "-j RETURN" : `-j REDIRECT --to-ports ${verdict.port}`;
}

function line(chain: string, parts: readonly string[]): string {
  return ["-A", chain, ...parts.filter((part) => part !== "")].join(" ");
}

/** A rule as `iptables-save` prints it. */
function ruleLine(chain: string, { matches, verdict, comment }: Rule): string {
  return line(chain, [...matches.map(matchText), `-m comment --comment "${comment}"`, verdictText(verdict)]);
}

/** The jump from a built-in chain to one of ours. */
export function jumpLine({ name, from, comment }: IptablesChain): string {
  return line(from, [`-m comment --comment "${comment}"`, `-j ${name}`]);
}

/** The rules of our chain, one line each, as `iptables-save` prints it. */
function chainLines(set: RuleSet, chain: IptablesChain): readonly string[] {
  return chain
    .rules(set)
    .flatMap(split)
    .map((rule) => ruleLine(chain.name, rule));
}

/**
 * One transaction that flushes and fills our chains, and adds missing jumps to them.
 * @param saved what `iptables-save` printed before
 */
export function restoreText(set: RuleSet, saved: string): string {
  const present = new Set(saved.split("\n"));
  return [
    "*nat",
    ...IPTABLES_CHAINS.map(({ name }) => `:${name} - [0:0]`),
    ...IPTABLES_CHAINS.flatMap((chain) => chainLines(set, chain)),
    ...IPTABLES_CHAINS.map(jumpLine).filter((jump) => !present.has(jump)),
    "COMMIT",
    "",
  ].join("\n");
}

/**
 * One transaction that restores our chains.
 * @param saved what `iptables-save` printed before
 */
export function undoText(saved: string): string {
  const lines = saved.split("\n");
  const undone = IPTABLES_CHAINS.flatMap((chain) => {
    const before = rulesOf(lines, chain.name);
    const removed = lines.includes(jumpLine(chain)) ? [] : [jumpLine(chain).replace("-A", "-D")];
    if (hasChain(lines, chain.name)) return [`-F ${chain.name}`, ...before, ...removed];
    return [...removed, `-F ${chain.name}`, `-X ${chain.name}`];
  });
  return ["*nat", ...undone, "COMMIT", ""].join("\n");
}

/**
 * One transaction that removes our chains, and all jumps to them.
 * @param saved what `iptables-save` printed before
 */
export function removalText(saved: string): string {
  const lines = saved.split("\n");
  const removed = IPTABLES_CHAINS.filter(({ name }) => hasChain(lines, name)).flatMap(({ name, from }) => {
    const jumps = rulesOf(lines, from).filter((rule) => rule.endsWith(` -j ${name}`));
    return [...jumps.map((jump) => jump.replace("-A", "-D")), `-F ${name}`, `-X ${name}`];
  });
  return ["*nat", ...removed, "COMMIT", ""].join("\n");
}

/** Whether `iptables-save` printed one of our chains. */
export function hasChains(saved: string): boolean {
  const lines = saved.split("\n");
  return IPTABLES_CHAINS.some((chain) => hasChain(lines, chain.name));
}

const hasChain = (lines: readonly string[], chain: string) => lines.some((each) => each.startsWith(`:${chain} `));
export const rulesOf = (lines: readonly string[], chain: string) =>
  lines.filter((each) => each.startsWith(`-A ${chain} `));
