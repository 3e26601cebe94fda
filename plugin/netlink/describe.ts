/** An nftables expression in words, whether this plugin made it or the kernel lists it: equal words, equal meaning. */
import { attributes } from "./codec";

type Data = ReadonlyMap<number, Buffer>;

const EMPTY = Buffer.alloc(0);
const number = (data: Data, type: number) => data.get(type)?.readInt32BE(0) ?? 0;

/** The value within a data attribute: a two-byte one is a port, the others are shown as they are. */
function shown(data: Data, type: number): string {
  const value = attributes(data.get(type) ?? EMPTY).get(1) ?? EMPTY;
  return value.length === 2 ? `${value.readUInt16BE(0)}` : value.toString("hex");
}

const META = new Map([
  [7, "out-interface"],
  [10, "uid"],
  [11, "gid"],
  [16, "protocol"],
]);
const OPERATIONS = ["=", "!=", "<", "<=", ">", ">="];
const BASES = ["link", "network", "transport"];
const VERDICT_REGISTER = 0;
const VERDICT_ATTRIBUTE = 2;
const RETURN = -5;

function immediate(data: Data): string {
  if (number(data, 1) !== VERDICT_REGISTER) return `to ${shown(data, 2)}`;
  const verdict = attributes(data.get(2) ?? EMPTY).get(VERDICT_ATTRIBUTE) ?? EMPTY;
  const code = attributes(verdict).get(1)?.readInt32BE(0);
  return code === RETURN ? "return" : `verdict ${code}`;
}

const words: Readonly<Record<string, (data: Data) => string>> = {
  meta: (data) => META.get(number(data, 2)) ?? `meta ${number(data, 2)}`,
  cmp: (data) => `${OPERATIONS[number(data, 2)] ?? "?"} ${shown(data, 3)}`,
  payload: (data) => `${BASES[number(data, 2)] ?? "?"} bytes ${number(data, 3)}+${number(data, 4)}`,
  bitwise: (data) => `& ${shown(data, 4)}`,
  immediate,
  redir: () => "redirect",
};

/** One expression. */
export function describeExpression(expression: Buffer): string {
  const members = attributes(expression);
  const name = (members.get(1) ?? EMPTY).toString("latin1").replace(/\0.*$/, "");
  return words[name]?.(attributes(members.get(2) ?? EMPTY)) ?? name;
}

/** A whole rule, for example `protocol = 06 transport bytes 2+2 = 4191 return`. */
export function describeRule(expressions: readonly Buffer[]): string {
  return expressions.map(describeExpression).join(" ");
}
