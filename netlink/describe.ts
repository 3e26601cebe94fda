/** Describes expressions from the kernel in words; equal words mean equal expressions. */
import { asciiText } from "../host/bytes";
import { attributes, readNumber32 } from "./codec";

type Data = ReadonlyMap<number, Uint8Array>;

const EMPTY = new Uint8Array(0);
const number = (data: Data, type: number) => readNumber32(data.get(type)) ?? 0;
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** A compared value: two bytes are a port, other values are shown in hexadecimal. */
export function bytesInWords(bytes: Uint8Array): string {
  const [first = 0, second = 0] = bytes;
  if (bytes.length === 2) return `${(first << 8) | second}`;
  let text = "";
  for (const byte of bytes) text += HEX[byte];
  return text;
}

/** The value within a data attribute. */
const shown = (data: Data, type: number) => bytesInWords(attributes(data.get(type) ?? EMPTY).get(1) ?? EMPTY);

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
  const code = readNumber32(attributes(verdict).get(1));
  return code === RETURN ? "return" : `verdict ${code}`;
}

/** Describes the content of a set. */
export type SetInWords = (name: string) => string;

const words: Readonly<Record<string, (data: Data, set: SetInWords) => string>> = {
  meta: (data) => META.get(number(data, 2)) ?? `meta ${number(data, 2)}`,
  cmp: (data) => `${OPERATIONS[number(data, 2)] ?? "?"} ${shown(data, 3)}`,
  payload: (data) => `${BASES[number(data, 2)] ?? "?"} bytes ${number(data, 3)}+${number(data, 4)}`,
  bitwise: (data) => `& ${shown(data, 4)}`,
  immediate,
  lookup: (data, set) => `${number(data, 5) === 0 ? "" : "not "}${set(asciiText(data.get(1) ?? EMPTY))}`,
  redir: () => "redirect",
};

function describeExpression(expression: Uint8Array, set: SetInWords): string {
  const members = attributes(expression);
  const name = asciiText(members.get(1) ?? EMPTY);
  return words[name]?.(attributes(members.get(2) ?? EMPTY), set) ?? name;
}

/** Describes a whole rule, for example `protocol = 06 transport bytes 2+2 = 4191 return`. */
export function describeRule(expressions: readonly Uint8Array[], set: SetInWords): string {
  return expressions.map((expression) => describeExpression(expression, set)).join(" ");
}
