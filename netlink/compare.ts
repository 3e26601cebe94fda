/**
 * Compares the rules in force with the descriptions that ADD gave them, and reports the first difference. Tables of
 * others do not count: a container of the pod may have rules of its own, as dockerd does, and must not cost the pod its
 * address.
 */
import { FAMILIES, type Family } from "../cni/subnets";
import { CHAINS, type Chain, HOOK, PRIORITY, TABLE } from "./batch";
import { describeRule, type SetInWords } from "./describe";
import { elementsInWords } from "./interval-set";
import { decodeMark, type Mark } from "./mark";
import { hasTable, type ListedRule, type NatChain, natChains, setElements } from "./readback";
import type { Netfilter } from "./socket";

/** The first rule that is changed, added or missing. Rules of versions without marks have no description. */
function rulesDifference(where: string, rules: readonly ListedRule[], set: SetInWords): string | undefined {
  const marks = rules.map(({ userdata }) => decodeMark(userdata));
  const marked = marks.filter((mark): mark is Mark => mark !== undefined);
  const [first] = marked;
  if (rules.length === 0) return `${where} is empty`;
  if (first === undefined) return undefined;
  const missing = (index: number, before: Mark | undefined) => {
    const named = before === undefined ? marked.find((mark) => mark.index === mark.count) : before;
    const follows = before === undefined || before.index + 1 === index;
    return `${where}: rule ${index} of ${first.count}, "${(follows && named?.next) || "unknown"}", is missing`;
  };
  let before: Mark | undefined;
  for (const [at, rule] of rules.entries()) {
    const mark = marks[at];
    const is = describeRule(rule.expressions, set);
    if (mark === undefined) return `${where}: "${is}" was added`;
    const index = (before?.index ?? 0) + 1;
    if (mark.index > index) return missing(index, before);
    if (mark.index < index) return `${where}: "${is}" was added`;
    if (mark.words !== is) return `${where}, rule ${index}: is "${is}", should be "${mark.words}"`;
    before = mark;
  }
  return before !== undefined && before.index < before.count ? missing(before.index + 1, before) : undefined;
}

function chainDifference(
  family: Family,
  chain: Chain,
  chains: readonly NatChain[],
  set: SetInWords,
): string | undefined {
  const where = `table ${family} ${TABLE}, chain ${CHAINS[chain]}`;
  const ours = chains.find(({ table, name }) => table === TABLE && name === CHAINS[chain]);
  if (ours === undefined) return `${where} is missing`;
  if (ours.hook !== HOOK[chain] || ours.priority !== PRIORITY) {
    return `${where}: hook ${ours.hook}, priority ${ours.priority}, should be hook ${HOOK[chain]}, priority ${PRIORITY}`;
  }
  return rulesDifference(where, ours.rules, set);
}

/** For how many families ADD programmed rules, according to the rules; undefined where they do not say. */
function familiesOf(chains: readonly NatChain[]): number | undefined {
  const ours = chains.filter(({ table }) => table === TABLE).flatMap(({ rules }) => rules);
  return ours.map(({ userdata }) => decodeMark(userdata)?.families).find((families) => families !== undefined);
}

/** The rules in force in a namespace, compared with those that ADD programmed. */
export interface Comparison {
  /** Whether any family has this plugin's table. */
  readonly isThere: boolean;
  readonly difference?: string;
}

/** Compares the native rules in the namespace of the socket. @throws SystemError */
export function compareNative(netfilter: Netfilter): Comparison {
  const present = FAMILIES.filter((family) => hasTable(netfilter, family));
  if (present.length === 0) return { isThere: false };
  for (const family of present) {
    const chains = natChains(netfilter, family);
    const set = (name: string) => elementsInWords(setElements(netfilter, family, name));
    const difference =
      chainDifference(family, "inbound", chains, set) ?? chainDifference(family, "outbound", chains, set);
    if (difference !== undefined) return { isThere: true, difference };
    const absent = FAMILIES.find((each) => !present.includes(each));
    if (absent !== undefined && (familiesOf(chains) === 2 || absent === "ip")) {
      return { isThere: true, difference: `table ${absent} ${TABLE} is missing` };
    }
  }
  return { isThere: true };
}
