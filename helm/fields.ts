import { isValue, type ValueMembers } from "./value";

/** One value, as shown in documents. */
export interface Field {
  /** Its full path. */
  readonly path: readonly string[];
  /** The type as readers know it. */
  readonly type: string;
  readonly description: string;
  /** Undefined if the value has none. */
  readonly default: unknown;
  readonly examples: readonly unknown[];
  /** Allowed values, if they are few. */
  readonly choices: readonly string[];
}

/** Allowed values as text; the empty string is quoted. */
export const choicesText = (choices: readonly string[]): string =>
  choices.map((choice) => (choice === "" ? '""' : choice)).join(", ");

/** All values in their order, with groups flattened. */
export function fieldsOf(values: ValueMembers, path: readonly string[] = []): readonly Field[] {
  return Object.entries(values).flatMap(([name, member]) => {
    const at = [...path, name];
    if (!isValue(member)) return fieldsOf(member, at);
    const { kind, form, about } = member;
    return {
      path: at,
      type: { quantity: "string", map: "object" }[kind as string] ?? kind,
      description: about.description,
      default: about.default,
      examples: about.examples ?? [],
      choices: kind === "string" ? ((form["enum"] ?? []) as readonly string[]) : [],
    };
  });
}
