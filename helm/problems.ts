import type { z } from "zod";
import { choicesText } from "./fields";

const pathOf = (path: readonly PropertyKey[]): string => path.map(String).join(".");

function at(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null ? (inner as Record<PropertyKey, unknown>)[key] : undefined,
    value,
  );
}

/** The edit distance between two texts. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The name that was probably meant, if one is close enough. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const ranked = known
    .map((candidate) => ({ candidate, edits: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits);
  const best = ranked[0];
  return best !== undefined && best.edits <= Math.max(2, Math.floor(name.length / 3)) ? best.candidate : undefined;
}

function unknownKeys(issue: z.core.$ZodIssueUnrecognizedKeys, known: readonly string[]): readonly string[] {
  return issue.keys.map((key) => {
    const guess = nearest(key, known);
    const name = pathOf([...issue.path, key]);
    return `${name} is not a value${guess === undefined ? "" : `: did you mean ${pathOf([...issue.path, guess])}?`}`;
  });
}

function allowed(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_value":
      return `is not one of ${choicesText(issue.values)}`;
    case "too_small":
      return issue.origin === "string" || issue.origin === "array" ? "is empty" : `is less than ${issue.minimum}`;
    case "too_big":
      return `is more than ${issue.maximum}`;
    case "invalid_key":
      return issue.issues.map(allowed).join("; ");
    case "invalid_type":
      return `is not ${issue.expected === "int" ? "a whole number" : `of type ${issue.expected}`}`;
    case "invalid_union":
      return `is none of the types allowed: ${issue.errors.flat().map(allowed).join("; ")}`;
    default:
      return issue.message;
  }
}

/** A list of numbers or texts instead of a text: port lists are comma-separated texts. */
function listOfPorts(issue: z.core.$ZodIssue, value: unknown): string | undefined {
  const isList = issue.code === "invalid_type" && issue.expected === "string" && Array.isArray(value);
  return isList && value.every((item) => ["number", "string"].includes(typeof item)) ? value.join(",") : undefined;
}

/** The problems that a schema found, one sentence each: the value's name, the given value, and what is allowed. */
export function problemsOf(
  error: z.ZodError,
  given: unknown,
  keysAt: (path: readonly PropertyKey[]) => readonly string[],
): readonly string[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys") return unknownKeys(issue, keysAt(issue.path));
    const value = at(given, issue.path);
    const list = listOfPorts(issue, value);
    if (list !== undefined) return [`${pathOf(issue.path)}: ${JSON.stringify(value)} is a list: write "${list}"`];
    if (issue.code === "invalid_key") return [`${pathOf(issue.path)}: ${allowed(issue)}`];
    const shown = value === undefined ? "is missing and" : JSON.stringify(value);
    return [`${pathOf(issue.path)}: ${shown} ${allowed(issue)}`];
  });
}
