import { createHash } from "node:crypto";
import { type Expr, hasExpr, type Input, isExpr, type Kind, kindOf } from "./expression";
import { toJson as goJson, toPrettyJson as goPrettyJson, isTrue, merge as mergeMaps, toText } from "./go-values";

/**
 * The template functions. Each has its name in templates and an implementation for known values. A call whose arguments
 * are all known is computed at once, so that one construct serves charts and plain manifests.
 */
interface TemplateFunction {
  readonly kind: Kind;
  readonly compute: (subject: never, ...args: never[]) => unknown;
}

/** Type-checks the table without widening its keys. */
const declare = <Name extends string>(table: Readonly<Record<Name, TemplateFunction>>) => table;

const functions = declare({
  int: { kind: "int", compute: (value: unknown) => Number(value) },
  toString: { kind: "string", compute: toText },
  trim: { kind: "string", compute: (value: string) => value.trim() },
  splitList: { kind: "list", compute: (value: string, separator: string) => value.split(separator) },
  regexSplit: {
    kind: "list",
    compute: (_all: number, pattern: string, value: string) => value.split(new RegExp(pattern)),
  },
  compact: { kind: "list", compute: (list: readonly unknown[]) => list.filter(isTrue) },
  first: { kind: "any", compute: (list: readonly unknown[]) => list[0] },
  last: { kind: "any", compute: (list: readonly unknown[]) => list.at(-1) },
  kindIs: {
    kind: "bool",
    compute: (value: unknown, kind: string) =>
      kind === "invalid" ? value === undefined || value === null : kind === "float64" && typeof value === "number",
  },
  ternary: {
    kind: "any",
    compute: (test: unknown, then: unknown, otherwise: unknown) => (isTrue(test) ? then : otherwise),
  },
  eq: { kind: "bool", compute: (b: unknown, a: unknown) => a === b },
  ne: { kind: "bool", compute: (b: unknown, a: unknown) => a !== b },
  le: { kind: "bool", compute: (b: number, a: number) => a <= b },
  ge: { kind: "bool", compute: (b: number, a: number) => a >= b },
  not: { kind: "bool", compute: (value: unknown) => !isTrue(value) },
  and: { kind: "bool", compute: (...values: readonly unknown[]) => values.every(isTrue) },
  or: { kind: "bool", compute: (...values: readonly unknown[]) => values.some(isTrue) },
  default: { kind: "any", compute: (value: unknown, otherwise: unknown) => (isTrue(value) ? value : otherwise) },
  regexMatch: { kind: "bool", compute: (text: string, pattern: string) => new RegExp(pattern).test(text) },
  get: { kind: "any", compute: (key: string, map: Readonly<Record<string, unknown>>) => map[key] ?? "" },
  toJson: { kind: "string", compute: goJson },
  toPrettyJson: { kind: "block", compute: goPrettyJson },
  sha256sum: { kind: "string", compute: (text: string) => createHash("sha256").update(text).digest("hex") },
});

/** An empty map, as a function: cdk8s removes `{}` from metadata, even among the arguments of an expression. */
export const dict: Expr<unknown> = { $helm: { op: "call", name: "dict", kind: "map" } };

type FunctionName = keyof typeof functions;

/** Applies a function: yields a value if all arguments are known, else an expression. */
function call<T>(name: FunctionName, subject: unknown, args: readonly unknown[] = [], kind?: Kind): Input<T> {
  const entry = functions[name];
  if (!hasExpr([subject, ...args])) {
    const compute = entry.compute as (subject: unknown, ...args: readonly unknown[]) => unknown;
    return compute(subject, ...args) as T;
  }
  return { $helm: { op: "call", name, args, subject, kind: kind ?? entry.kind } };
}

/** A whole number, even if the value is text (`--set-string`). */
export const int = (value: Input<number | string>): Input<number> => call("int", value);

/** A boolean, even if the value is text (`--set-string`). */
export const bool = (value: Input<boolean | string>): Input<boolean> => eq(text(value), "true");

/**
 * The other value; if this one is a number from a values file, the number in JSON: as text, Go would write a large
 * number with an exponent.
 */
export const orNumber = (value: Input<unknown>, otherwise: Input<string>): Input<string> =>
  call("ternary", call("kindIs", value, ["float64"]), [toJson(value), otherwise]);

/** The same, but an absent value is true. */
export const boolOrTrue = (value: Input<boolean | string>): Input<boolean> => call("ne", "false", [text(value)]);

/** The text of a scalar. */
export const text = (value: Input<string | number | boolean>): Input<string> => call("toString", value);

/** Text without leading and trailing white space. */
export const trim = (value: Input<string>): Input<string> => call("trim", value);

/** The parts of a text. */
export const split = (value: Input<string>, separator: string): Input<readonly string[]> =>
  call("splitList", value, [separator]);

/** Splits a text at the matches of a pattern. */
export const splitBy = (value: Input<string>, pattern: string): Input<readonly string[]> =>
  call("regexSplit", -1, [pattern, value]);

/** The non-empty items of a list. */
export const compact = <T>(list: Input<readonly T[]>): Input<readonly T[]> => call("compact", list);

/** The first item; nothing if the list is empty. */
export const first = <T>(list: Input<readonly T[]>): Input<T> => call("first", list);
/** The last item; nothing if the list is empty. */
export const last = <T>(list: Input<readonly T[]>): Input<T> => call("last", list);

/** Whether two scalars are equal. */
export const eq = <T extends string | number | boolean>(a: Input<T>, b: Input<T>): Input<boolean> => call("eq", b, [a]);
/** Whether the first number is at most the second. */
export const le = (a: Input<number>, b: Input<number>): Input<boolean> => call("le", b, [a]);
/** Whether the first number is at least the second. */
export const ge = (a: Input<number>, b: Input<number>): Input<boolean> => call("ge", b, [a]);
/** Whether a value is empty: absent, false, zero, or an empty string, list or map. */
export const not = (value: Input<unknown>): Input<boolean> => call("not", value);
/** Whether no value is empty. Computed at once if one known value decides. */
export const and = (...values: readonly Input<unknown>[]): Input<boolean> =>
  values.some((value) => !hasExpr(value) && !isTrue(value)) ? false : call("and", values.at(-1), values.slice(0, -1));
/** Whether any value is not empty. Computed at once if one known value decides. */
export const or = (...values: readonly Input<unknown>[]): Input<boolean> =>
  values.some((value) => !hasExpr(value) && isTrue(value)) ? true : call("or", values.at(-1), values.slice(0, -1));
/** Whether a text contains a match of a pattern, which JavaScript and Go must read alike. */
export const matches = (value: Input<string>, pattern: string): Input<boolean> => call("regexMatch", value, [pattern]);

/** The value, or another one if it is empty: absent, false, zero, or an empty string, list or map. */
export const orElse = <T>(value: Input<T>, otherwise: Input<T>): Input<T> =>
  call("default", value, [otherwise], kindOf(otherwise));

/** The value, or another one if it is absent. */
export const orAbsent = <T>(value: Input<T>, otherwise: Input<T>): Input<T> =>
  call(
    "ternary",
    call("kindIs", value, ["invalid"]),
    [otherwise, value],
    kindOf(value) === "any" ? "any" : kindOf(otherwise),
  );

/** The text under a key of a map; empty if the key is absent. */
export const entryOf = (map: Input<Readonly<Record<string, unknown>>>, key: Input<string>): Input<string> =>
  call("get", key, [map], "string");

/** Compact JSON, as Go writes it. */
export const toJson = (value: unknown): Input<string> => call("toJson", value);

/** Indented JSON, as Go writes it. */
export const toPrettyJson = (value: unknown): Input<string> => call("toPrettyJson", value);

/** The SHA-256 digest of a text, in hexadecimal. */
export const sha256 = (value: Input<string>): Input<string> => call("sha256sum", value);

/** Concatenates texts. */
export function concat(...parts: readonly Input<string | number>[]): Input<string> {
  if (!hasExpr(parts)) return parts.join("");
  const format = parts.map((part) => (isExpr(part) ? "%v" : String(part).replaceAll("%", "%%"))).join("");
  const [firstPart, ...others] = parts.filter((part) => isExpr(part));
  const args = [format, firstPart, ...others];
  return { $helm: { op: "call", name: "printf", args: args.slice(0, -1), subject: args.at(-1), kind: "string" } };
}

/** Merges maps: the first value of a key wins, unless it is empty (as sprig's `merge`). */
export function merge<T>(...given: readonly Input<Readonly<Record<string, T>>>[]): Input<Readonly<Record<string, T>>> {
  // As for `dict`.
  const maps = given.filter((map) => isExpr(map) || Object.keys(map).length > 0);
  if (!hasExpr(maps)) return mergeMaps(maps as readonly Record<string, unknown>[]) as Record<string, T>;
  return {
    $helm: { op: "call", name: "merge", args: [dict, ...maps.slice(0, -1)], subject: maps.at(-1), kind: "map" },
  };
}
