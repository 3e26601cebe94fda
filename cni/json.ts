/** Checks JSON from outside: an invalid value is a CNI error that names the field. */
import { CniError, ErrorCode, quoted, reasonOf } from "./errors";

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether two values of JSON are equal; the order of keys does not matter. */
export function sameJson(left: unknown, right: unknown): boolean {
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return left === right;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const [ours, theirs] = [new Map(Object.entries(left)), new Map(Object.entries(right))];
  return (
    ours.size === theirs.size && [...ours].every(([key, value]) => theirs.has(key) && sameJson(value, theirs.get(key)))
  );
}

/**
 * Why a text is not JSON: the engine's message without its quotes of the text, which may contain credentials. @param
 * error thrown by JSON.parse
 */
export function syntaxProblem(error: unknown): string {
  return reasonOf(error).replace(/[,:]?\s*(?:\.\.\.)?(?:"|'(?!.')).*$/s, "");
}

/** The type of a value, in words: `a list`, `an object`, `a number`, … */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : `${typeof value === "object" ? "an" : "a"} ${typeof value}`;
}

/** CniError 7, "FIELD: VALUE is not WANTED". */
export function mismatch(field: string, value: unknown, wanted: string): CniError {
  const shown = typeof value === "string" ? quoted(value) : typeof value === "object" ? kindOf(value) : String(value);
  return new CniError(ErrorCode.config, `${field}: ${shown} is not ${wanted}`);
}

/** @throws CniError 7, see {@link mismatch} */
export function refuse(field: string, value: unknown, wanted: string): never {
  throw mismatch(field, value, wanted);
}
