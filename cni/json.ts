/** Typed reading of JSON that others wrote; what does not fit is a CNI error that names the field. */
import { CniError, ErrorCode, quoted } from "./errors";

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a value is, in words: `a list`, `an object`, `a number`, … */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : `${typeof value === "object" ? "an" : "a"} ${typeof value}`;
}

/** @throws CniError 7, "FIELD: VALUE is not WANTED" */
export function refuse(field: string, value: unknown, wanted: string): never {
  const shown = typeof value === "string" ? quoted(value) : typeof value === "object" ? kindOf(value) : String(value);
  throw new CniError(ErrorCode.config, `${field}: ${shown} is not ${wanted}`);
}

/** Reads the members of one object; `at` is where it stands, for messages. Absent and null members get the fallback. */
export class ObjectReader {
  private constructor(
    private readonly source: JsonObject,
    private readonly at: string,
  ) {}

  /** @throws CniError 7 where the value is there and not an object */
  static of(value: Json | undefined, at: string): ObjectReader {
    if (value === undefined || value === null) return new ObjectReader({}, at);
    return isObject(value) ? new ObjectReader(value, at) : refuse(at, value, "an object");
  }

  object(key: string): ObjectReader {
    return ObjectReader.of(this.source[key], this.path(key));
  }

  boolean(key: string, fallback: boolean): boolean {
    return this.read(key, fallback, (value) => (typeof value === "boolean" ? value : undefined), "true or false");
  }

  string(key: string, fallback: string): string {
    return this.read(key, fallback, (value) => (typeof value === "string" ? value : undefined), "a string");
  }

  /** An integer within the bounds; `low` may be `-Infinity`. */
  integer(key: string, fallback: number, low: number, high: number): number {
    const accept = (value: Json) =>
      typeof value === "number" && Number.isInteger(value) && value >= low && value <= high ? value : undefined;
    return this.read(key, fallback, accept, `a whole number ${low === -Infinity ? "up" : `from ${low}`} to ${high}`);
  }

  oneOf<T extends string>(key: string, fallback: T, allowed: readonly T[]): T {
    const accept = (value: Json) => allowed.find((candidate) => candidate === value);
    return this.read(key, fallback, accept, `one of ${allowed.join(", ")}`);
  }

  /** A list whose every member `accept` takes; it gives undefined for one that does not fit. */
  list<T>(key: string, accept: (item: Json) => T | undefined, wanted: string): readonly T[] {
    const value = this.source[key];
    if (value === undefined || value === null) return [];
    if (!Array.isArray(value)) return refuse(this.path(key), value, `a list of ${wanted}`);
    return value.map((item: Json, index) => {
      const accepted = accept(item);
      return accepted === undefined ? refuse(`${this.path(key)}[${index}]`, item, wanted) : accepted;
    });
  }

  private path(key: string): string {
    return this.at === "" ? key : `${this.at}.${key}`;
  }

  private read<T>(key: string, fallback: T, accept: (value: Json) => T | undefined, wanted: string): T {
    const value = this.source[key];
    if (value === undefined || value === null) return fallback;
    const accepted = accept(value);
    return accepted === undefined ? refuse(this.path(key), value, wanted) : accepted;
  }
}
