/** Reads assignments such as `image.name=x,tolerations[0].operator=Exists` exactly as helm's `--set` does. */

import { isObject } from "../cni/json";

type Map = Record<string, unknown>;

/** How the text after `=` becomes a value. */
type ReadValue = (text: string) => unknown;

const words: readonly (readonly [RegExp, unknown])[] = [
  [/^true$/iu, true],
  [/^false$/iu, false],
  [/^null$/iu, null],
];

/** Whether Go reads a text as an integer of 64 bits, without leading zeros. */
const isWhole = (text: string): boolean =>
  /^(0|[+-]\d+|[1-9]\d*)$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text);

/** `--set`: booleans, null and whole numbers keep their type. */
export const typed: ReadValue = (text) => {
  const word = words.find(([pattern]) => pattern.test(text));
  if (word !== undefined) return word[1];
  // No negative zero.
  return isWhole(text) ? Number(text) + 0 : text;
};

/** `--set-string`: everything is text. */
export const asText: ReadValue = (text) => text;

const HIGHEST_INDEX = 65_536;

/** The text has ended. Of an incomplete assignment, the part that helm reads counts. */
class Over extends Error {}

/** A key without a name is ignored. */
function set(map: Map, key: string, value: unknown): void {
  if (key !== "") Object.defineProperty(map, key, { value, configurable: true, enumerable: true, writable: true });
}

function setItem(list: unknown[], index: number, value: unknown): void {
  while (list.length < index) list.push(null);
  list[index] = value;
}

/** Helm's parser of assignments. */
class Assignments {
  private readonly characters: readonly string[];
  private at = 0;

  constructor(
    private readonly text: string,
    private readonly read: ReadValue,
  ) {
    this.characters = [...text];
  }

  assignTo(map: Map): void {
    try {
      for (;;) this.assign(map);
    } catch (error) {
      if (!(error instanceof Over)) throw error;
    }
  }

  private assign(map: Map): void {
    const [key, end] = this.until("=[,.");
    if (end === undefined && key === "") throw new Over();
    if (end === undefined || end === ",") throw this.wrong(`"${key}" is not an assignment: write name=value`);
    if (end === "=") this.assignValue(map, key);
    else if (end === ".") this.assignWithin(map, key);
    else this.assignToItem(map, key);
  }

  private assignValue(map: Map, key: string): void {
    const isOver = this.isOver();
    set(map, key, isOver ? "" : this.value());
    if (isOver) throw new Over();
  }

  private assignWithin(map: Map, key: string): void {
    const inner = Object.hasOwn(map, key) ? map[key] : {};
    if (!isObject(inner)) throw this.wrong(`${key} is not a map`);
    try {
      this.assign(inner);
      if (Object.keys(inner).length === 0) throw this.wrong(`"${key}." is not an assignment: write name=value`);
    } finally {
      if (Object.keys(inner).length > 0) set(map, key, inner);
    }
  }

  private assignToItem(map: Map, key: string): void {
    const index = this.index();
    const list = Object.hasOwn(map, key) ? map[key] : [];
    if (!Array.isArray(list)) throw this.wrong(`${key} is not a list`);
    set(map, key, list);
    this.assignItem(list, index);
  }

  private assignItem(list: unknown[], index: number): void {
    const [more, end] = this.until("[.=");
    if (more !== "") throw this.wrong(`"${more}" after an index`);
    if (end === undefined) throw new Over();
    if (end === "=") setItem(list, index, this.isOver() ? "" : this.value());
    else if (end === ".") this.assignWithinItem(list, index);
    else {
      const next = this.index();
      const inner = list[index] ?? [];
      if (!Array.isArray(inner)) throw this.wrong(`item ${index} is not a list`);
      this.assignItem(inner, next);
      setItem(list, index, inner);
    }
  }

  private assignWithinItem(list: unknown[], index: number): void {
    const found = list[index];
    const inner = isObject(found) ? found : {};
    if (index < list.length) setItem(list, index, inner);
    this.assign(inner);
    setItem(list, index, inner);
  }

  private index(): number {
    const [text, end] = this.until("]");
    const index = Number(text);
    if (end === undefined || !/^[+-]?\d+$/.test(text) || index < 0 || index > HIGHEST_INDEX) {
      throw this.wrong(`[${text} is not an index between 0 and ${HIGHEST_INDEX}`);
    }
    return index;
  }

  private value(): unknown {
    if (this.characters[this.at] !== "{") return this.read(this.until(",")[0]);
    this.at++;
    const list: unknown[] = [];
    for (;;) {
      const [item, end] = this.until(",}");
      if (end === undefined) throw this.wrong("a list ends in }");
      list.push(this.read(item));
      if (end === "}") break;
    }
    if (this.characters[this.at] === ",") this.at++;
    return list;
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
export function withAssignments(values: Map, text: string, read: ReadValue): Map {
  const made = structuredClone(values);
  new Assignments(text, read).assignTo(made);
  return made;
}

/** `--set-file`: the value is a file's content. */
export function withFile(values: Map, text: string, readFile: (path: string) => string): Map {
  return withAssignments(values, text, readFile);
}
