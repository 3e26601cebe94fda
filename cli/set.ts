/** Reads assignments such as `image.name=x,tolerations[0].operator=Exists` as helm's `--set` does. */

import { isObject } from "../cni/json";

type Values = Readonly<Record<string, unknown>>;

/** How the text after `=` becomes a value. */
type ReadValue = (text: string) => unknown;

/** Names of members, and indexes of items. */
type Path = readonly (string | number)[];

const WORDS: Values = { true: true, false: false, null: null };

/** Whether Go reads a text as an integer of 64 bits, without leading zeros. */
const isWhole = (text: string): boolean =>
  /^(0|[+-]\d+|[1-9]\d*)$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text);

/** `--set`: booleans, null and whole numbers keep their type. */
export const typed: ReadValue = (text) => {
  const word = text.toLowerCase();
  if (Object.hasOwn(WORDS, word)) return WORDS[word];
  // No negative zero.
  return isWhole(text) ? Number(text) + 0 : text;
};

/** `--set-string`: everything is text. */
export const asText: ReadValue = (text) => text;

const HIGHEST_INDEX = 65_536;

/** Comma-separated assignments. */
class Assignments {
  private readonly characters: readonly string[];
  private at = 0;

  constructor(
    private readonly text: string,
    private readonly read: ReadValue,
  ) {
    this.characters = [...text];
  }

  /** @throws an Error with the problem */
  appliedTo(values: Values): Record<string, unknown> {
    let made: unknown = values;
    while (!this.isOver()) made = this.put(made, this.path(), this.value());
    return made as Record<string, unknown>;
  }

  /** A value with another one at a path. */
  private put(into: unknown, [step, ...path]: Path, value: unknown, at = ""): unknown {
    if (step === undefined) return value;
    const empty = typeof path[0] === "number" ? [] : {};
    if (typeof step === "string") {
      if (!isObject(into)) throw this.wrong(`${at} is not a map`);
      const inner = Object.hasOwn(into, step) ? into[step] : empty;
      return { ...into, [step]: this.put(inner, path, value, at === "" ? step : `${at}.${step}`) };
    }
    if (!Array.isArray(into)) throw this.wrong(`${at} is not a list`);
    const list = [...into, ...Array.from({ length: Math.max(0, step - into.length) }, () => null)];
    const found: unknown = list[step] ?? empty;
    // As helm does: an item that is not a map is replaced, one that is not a list is an error.
    const inner = typeof path[0] === "string" && !isObject(found) ? {} : found;
    list[step] = this.put(inner, path, value, `${at}[${step}]`);
    return list;
  }

  /** The names and indexes before a `=`. */
  private path(): Path {
    const path: (string | number)[] = [];
    for (let end: string | undefined = "."; end !== "="; ) {
      const isIndex: boolean = end === "[";
      const [step, next] = this.until(isIndex ? "]" : "=[,.");
      path.push(isIndex ? this.index(step) : step);
      const [rest, after]: readonly [string, string | undefined] = isIndex ? this.until("=[,.") : ["", next];
      if (step === "" || rest !== "" || after === undefined || after === ",") {
        throw new Error(`${JSON.stringify(this.text)} is not an assignment: write name=value`);
      }
      end = after;
    }
    return path;
  }

  /** The value after a `=`. */
  private value(): unknown {
    if (this.isOver()) return "";
    if (this.characters[this.at] !== "{") return this.read(this.until(",")[0]);
    this.at++;
    const list: unknown[] = [];
    for (let end: string | undefined = ","; end !== "}"; ) {
      const [item, next] = this.until(",}");
      if (next === undefined) throw this.wrong("a list ends in }");
      list.push(this.read(item));
      end = next;
    }
    if (this.characters[this.at] === ",") this.at++;
    return list;
  }

  private index(text: string): number {
    if (/^\+?\d+$/.test(text) && Number(text) <= HIGHEST_INDEX) return Number(text);
    throw this.wrong(`[${text} is not an index between 0 and ${HIGHEST_INDEX}`);
  }

  /** The text before the next delimiter, and the delimiter; a backslash escapes any character. */
  private until(ends: string): readonly [string, string | undefined] {
    let text = "";
    while (!this.isOver()) {
      const character = this.characters[this.at++] ?? "";
      if (ends.includes(character)) return [text, character];
      text += character === "\\" ? (this.characters[this.at++] ?? "") : character;
    }
    return [text, undefined];
  }

  private isOver(): boolean {
    return this.at >= this.characters.length;
  }

  private wrong(problem: string): Error {
    return new Error(`${this.text}: ${problem}`);
  }
}

/** Values with comma-separated assignments applied. */
export function withAssignments(values: Values, text: string, read: ReadValue): Record<string, unknown> {
  return new Assignments(text, read).appliedTo(values);
}

/** `--set-file`: the value is a file's content. */
export const withFile = (values: Values, text: string, readFile: (path: string) => string) =>
  withAssignments(values, text, readFile);
