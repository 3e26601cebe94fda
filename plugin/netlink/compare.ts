/** Compares the rules in force with those that should be, and says what differs first. */
import type { RuleSet } from "../../cni/redirect/rules";
import { CHAINS, type Chain, HOOK, PRIORITY, TABLE } from "./batch";
import { attributeList } from "./codec";
import { describeRule } from "./describe";
import { expressionLists } from "./expressions";
import type { Kernel } from "./port";
import { type NatChain, natChains } from "./readback";

/** What a chain should hold, a line a rule. */
function wantedRules(set: RuleSet, chain: Chain): readonly string[] {
  const lists = set[chain].flatMap(expressionLists);
  return lists.map((list) => describeRule(list.flatMap((each) => [...attributeList(each)].map(([, value]) => value))));
}

function ruleDifference(where: string, wanted: readonly string[], actual: readonly string[]): string | undefined {
  for (let index = 0; index < Math.max(wanted.length, actual.length); index++) {
    const [should, is] = [wanted[index], actual[index]];
    if (should === is) continue;
    const place = `${where}, rule ${index + 1}`;
    if (should === undefined) return `${place}: "${is}" is one too many`;
    return is === undefined ? `${place}: "${should}" is missing` : `${place}: is "${is}", should be "${should}"`;
  }
  return undefined;
}

/** Whether a foreign chain sees a packet before ours. At equal priority the chain that came later does. */
function precedes(foreign: NatChain, ours: NatChain, chains: readonly NatChain[]): boolean {
  if (foreign.table === TABLE || foreign.hook !== ours.hook || foreign.rules.length === 0) return false;
  if (foreign.priority !== ours.priority) return foreign.priority < ours.priority;
  return chains.indexOf(foreign) > chains.indexOf(ours);
}

function chainDifference(set: RuleSet, chain: Chain, chains: readonly NatChain[]): string | undefined {
  const where = `table ${set.family} ${TABLE}, chain ${CHAINS[chain]}`;
  const ours = chains.find(({ table, name }) => table === TABLE && name === CHAINS[chain]);
  if (ours === undefined) return `${where} is missing`;
  if (ours.hook !== HOOK[chain] || ours.priority !== PRIORITY) {
    return `${where}: hook ${ours.hook}, priority ${ours.priority}, should be hook ${HOOK[chain]}, priority ${PRIORITY}`;
  }
  const foreign = chains.find((candidate) => precedes(candidate, ours, chains));
  if (foreign !== undefined) {
    return `${where}: table ${set.family} ${foreign.table}, chain ${foreign.name} has ${foreign.rules.length} rules that come before ours`;
  }
  return ruleDifference(where, wantedRules(set, chain), ours.rules.map(describeRule));
}

/** The first difference between the nat chains of a family and what they should be. */
function firstDifference(set: RuleSet, chains: readonly NatChain[]): string | undefined {
  if (!chains.some(({ table }) => table === TABLE)) return `table ${set.family} ${TABLE} is missing`;
  return chainDifference(set, "inbound", chains) ?? chainDifference(set, "outbound", chains);
}

/** The first difference between the rules in force, in the namespace of the calling thread, and those that should be. */
export function nativeDifference(kernel: Kernel, sets: readonly RuleSet[]): string | undefined {
  const differences = sets.map((set) => firstDifference(set, natChains(kernel, set.family)));
  return differences.find((difference) => difference !== undefined);
}
