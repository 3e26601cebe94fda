/** Whole rule sets as one netlink batch, which the kernel applies atomically. */
import { CNI_NAME } from "../cni/contract";
import { perSubnet, type Rule, type RuleSet } from "../cni/redirect/rules";
import type { Family } from "../cni/subnets";
import { ascii, concat } from "../host/bytes";
import { attribute, message, nested, number32, text } from "./codec";
import { expressionLists, MAX_ALTERNATIVES } from "./expressions";
import { elementAttributes, type IntervalSet, setAttributes } from "./interval-set";
import { encodeMark } from "./mark";

/** The name of this plugin's table in each family. */
export const TABLE = CNI_NAME;
export const CHAINS = { inbound: "inbound", outbound: "outbound" } as const;
export type Chain = keyof typeof CHAINS;

export const NFPROTO: Readonly<Record<Family, number>> = { ip: 2, ip6: 10 };
const AF_UNSPEC = 0;
export const SUBSYSTEM = 10;
const BATCH_BEGIN = 0x10;
const BATCH_END = 0x11;
const message16 = (type: number) => (SUBSYSTEM << 8) | type;
const NEW = { table: message16(0), chain: message16(3), rule: message16(6), set: message16(9), element: message16(12) };
const DELETE = { table: message16(2) };

const REQUEST = 0x1;
const ACK = 0x4;
const EXCLUSIVE = 0x200;
const CREATE = 0x400;
const APPEND = 0x800;

export const NFTA_TABLE = { name: 1, flags: 2 };
export const NFTA_CHAIN = { table: 1, name: 3, hook: 4, type: 7 };
export const NFTA_HOOK = { number: 1, priority: 2 };
export const NFTA_RULE = { table: 1, chain: 2, expressions: 4, userdata: 7 };

export const HOOK: Readonly<Record<Chain, number>> = { inbound: 0, outbound: 3 };
/** The priority of iptables' nat table for destinations. */
export const PRIORITY = -100;

/** A message without its sequence number. */
interface Step {
  readonly type: number;
  readonly flags: number;
  readonly family: number;
  readonly attributes: readonly Uint8Array[];
}

function table(type: number, flags: number, family: Family): Step {
  return { type, flags, family: NFPROTO[family], attributes: [text(NFTA_TABLE.name, TABLE)] };
}

function newChain(family: Family, chain: Chain): Step {
  const hook = nested(NFTA_CHAIN.hook, number32(NFTA_HOOK.number, HOOK[chain]), number32(NFTA_HOOK.priority, PRIORITY));
  return {
    type: NEW.chain,
    flags: CREATE | EXCLUSIVE,
    family: NFPROTO[family],
    attributes: [
      text(NFTA_CHAIN.table, TABLE),
      text(NFTA_CHAIN.name, CHAINS[chain]),
      hook,
      text(NFTA_CHAIN.type, "nat"),
    ],
  };
}

const COMMENT_TYPE = 0;
const MAX_COMMENT = 128;

/** A rule's comment as `nft` reads it; a long one is truncated. */
function comment(written: string): Uint8Array {
  const fits = written.length < MAX_COMMENT;
  const bytes = ascii(`${fits ? written : `${written.slice(0, MAX_COMMENT - 4)}...`}\0`);
  return concat([Uint8Array.of(COMMENT_TYPE, bytes.length), bytes]);
}

/** Makes and fills a set. */
function newSet(family: Family, id: number, set: IntervalSet): readonly Step[] {
  const step = (type: number, attributes: readonly Uint8Array[]): Step => ({
    type,
    flags: CREATE,
    family: NFPROTO[family],
    attributes,
  });
  return [
    step(NEW.set, setAttributes(TABLE, id, set)),
    ...elementAttributes(TABLE, id, set).map((attributes) => step(NEW.element, attributes)),
  ];
}

/** Each network of a short list gets its own rule and comment. */
function listed(rule: Rule): readonly Rule[] {
  const each = perSubnet(rule);
  return each.length > MAX_ALTERNATIVES ? [rule] : each;
}

/**
 * The rules of a chain, each after the set that it uses. The user data describes each rule, so that CHECK needs nothing
 * else.
 */
function newRules(set: RuleSet, chain: Chain, families: number): readonly Step[] {
  const made = set[chain].flatMap(listed).flatMap((rule) =>
    expressionLists(rule).map((list) => ({
      comment: rule.comment,
      list,
      words: list.map(({ words }) => words).join(" "),
    })),
  );
  return made.flatMap(({ list, words, comment: written }, index) => {
    // Family, hook and position are unique for a rule in a batch.
    const id = ((NFPROTO[set.family] << 4) | HOOK[chain]) * 0x1_0000 + index + 1;
    const lookedUp = list.flatMap((each) => (each.set === undefined ? [] : newSet(set.family, id, each.set)));
    const bytes = list.map(({ encode }) => encode(id));
    const mark = { index: index + 1, count: made.length, families, words };
    const userdata = comment(written);
    const rule = {
      type: NEW.rule,
      flags: CREATE | APPEND,
      family: NFPROTO[set.family],
      attributes: [
        text(NFTA_RULE.table, TABLE),
        text(NFTA_RULE.chain, CHAINS[chain]),
        nested(NFTA_RULE.expressions, ...bytes),
        attribute(NFTA_RULE.userdata, concat([userdata, encodeMark(mark, userdata.length)])),
      ],
    };
    return [...lookedUp, rule];
  });
}

function content(set: RuleSet, families: number): readonly Step[] {
  return [
    newChain(set.family, "inbound"),
    newChain(set.family, "outbound"),
    ...newRules(set, "inbound", families),
    ...newRules(set, "outbound", families),
  ];
}

function frame(type: number, sequence: number): Uint8Array {
  return message({ type, flags: REQUEST, sequence, family: AF_UNSPEC, resource: SUBSYSTEM, attributes: [] });
}

/** Only the last message requests an acknowledgement, since the kernel always reports failures. */
function batch(steps: readonly Step[]): Uint8Array {
  const last = steps.length - 1;
  const body = steps.map((step, index) =>
    message({ ...step, flags: REQUEST | step.flags | (index === last ? ACK : 0), sequence: index + 1 }),
  );
  return concat([frame(BATCH_BEGIN, 0), ...body, frame(BATCH_END, steps.length + 1)]);
}

/** Creates the tables; fails with EEXIST if one exists. */
export function creationBatch(sets: readonly RuleSet[]): Uint8Array {
  return batch(sets.flatMap((set) => [table(NEW.table, CREATE | EXCLUSIVE, set.family), ...content(set, sets.length)]));
}

/**
 * Replaces existing tables, and removes those of other families. This is slower than creation, because the kernel waits
 * for readers of the old tables.
 */
export function replacementBatch(sets: readonly RuleSet[], unwanted: readonly Family[]): Uint8Array {
  return batch([
    ...unwanted.map((family) => table(DELETE.table, 0, family)),
    ...sets.flatMap((set) => [
      table(NEW.table, CREATE, set.family),
      table(DELETE.table, 0, set.family),
      table(NEW.table, CREATE | EXCLUSIVE, set.family),
      ...content(set, sets.length),
    ]),
  ]);
}
