/**
 * Compares the rules with the descriptions from ADD, and reports the first difference. Other tables are ignored: a
 * container of the pod, such as dockerd, may have its own rules, which must not cost the pod its address.
 */
import { FAMILIES, type Family } from "../cni/subnets";
import { CHAINS, type Chain, HOOK, PRIORITY, TABLE } from "./batch";
import { describeRule, type SetInWords } from "./describe";
import { elementsInWords } from "./interval-set";
import { decodeMark, type Mark } from "./mark";
import { chainRules, findChain, findTable, type ListedRule, setElements } from "./readback";
import { ListTooLong, type Netfilter } from "./socket";

/** The first changed, added or missing rule. */
function rulesDifference(where: string, rules: readonly ListedRule[], set: SetInWords): string | undefined {
  const marks = rules.map(({ userdata }) => decodeMark(userdata));
  if (rules.length === 0) return `${where} is empty`;
  const missing = (index: number, count: number) => `${where}: rule ${index} of ${count} is missing`;
  let before: Mark | undefined;
  for (const [at, rule] of rules.entries()) {
    const mark = marks[at];
    const is = describeRule(rule.expressions, set);
    if (mark === undefined) return `${where}: "${is}" was added`;
    const index = (before?.index ?? 0) + 1;
    if (mark.index > index) return missing(index, mark.count);
    if (mark.index < index) return `${where}: "${is}" was added`;
    if (mark.words !== is) return `${where}, rule ${index}: is "${is}", should be "${mark.words}"`;
    before = mark;
  }
  return before !== undefined && before.index < before.count ? missing(before.index + 1, before.count) : undefined;
}

/** The first difference in a chain, and the number of families that ADD programmed, if the chain records it. */
function compareChain(
  netfilter: Netfilter,
  family: Family,
  chain: Chain,
): { readonly difference?: string | undefined; readonly families?: number | undefined } {
  const where = `table ${family} ${TABLE}, chain ${CHAINS[chain]}`;
  const ours = findChain(netfilter, family, CHAINS[chain]);
  if (ours?.type !== "nat") return { difference: `${where} is missing` };
  if (ours.hook !== HOOK[chain] || ours.priority !== PRIORITY) {
    const should = `should be hook ${HOOK[chain]}, priority ${PRIORITY}`;
    return { difference: `${where}: hook ${ours.hook}, priority ${ours.priority}, ${should}` };
  }
  const set = (name: string) => elementsInWords(setElements(netfilter, family, name));
  try {
    const rules = chainRules(netfilter, family, CHAINS[chain]);
    const families = rules.map(({ userdata }) => decodeMark(userdata)?.families).find((each) => each !== undefined);
    return { difference: rulesDifference(where, rules, set), families };
  } catch (error) {
    if (error instanceof ListTooLong) return { difference: `${where}: has ${error.message}, which were added` };
    throw error;
  }
}

/** The result of comparing the rules in a namespace with those that ADD programmed. */
export interface Comparison {
  /** Whether any family has this plugin's table. */
  readonly isThere: boolean;
  readonly difference?: string | undefined;
}

/** Compares the native rules in the namespace of the socket, which cannot be used afterwards. @throws SystemError */
export function compareNative(netfilter: Netfilter): Comparison {
  const tables = FAMILIES.map((family) => ({ family, table: findTable(netfilter, family) }));
  const absent = tables.find(({ table }) => table === undefined)?.family;
  let isThere = false;
  for (const { family, table } of tables) {
    if (table === undefined) continue;
    isThere = true;
    if (table.isDormant) return { isThere, difference: `table ${family} ${TABLE} is dormant` };
    const inbound = compareChain(netfilter, family, "inbound");
    const outbound = inbound.difference === undefined ? compareChain(netfilter, family, "outbound") : inbound;
    if (outbound.difference !== undefined) return { isThere, difference: outbound.difference };
    if (absent !== undefined && (absent === "ip" || (inbound.families ?? outbound.families) === 2)) {
      return { isThere, difference: `table ${absent} ${TABLE} is missing` };
    }
  }
  return { isThere };
}
