/**
 * Expressions: values that are known only when Helm renders the chart.
 *
 * An expression is plain data under the key `$helm`. It therefore survives everything that cdk8s does with a manifest
 * (resolvers, sanitizing, sorting of keys, JSON patches) and reaches the writer as structure, never as text in a string.
 */

/**
 * The type of an expression, which decides how the writer prints it. `any` is a string or a number, `block` has several
 * lines.
 */
export type Kind = "string" | "block" | "int" | "bool" | "list" | "map" | "any";

export type Node =
  /** A field of one of Helm's built-in objects, such as `.Values.image.name`. */
  | { readonly op: "ref"; readonly path: readonly string[]; readonly kind: Kind }
  /** The current item of an enclosing `each`. */
  | { readonly op: "item"; readonly name: string; readonly kind: Kind }
  /** A template function; `subject` is its last argument, the one that a pipeline passes. */
  | {
      readonly op: "call";
      readonly name: string;
      readonly args?: readonly unknown[];
      readonly subject?: unknown;
      readonly kind: Kind;
    }
  | { readonly op: "when"; readonly test: unknown; readonly then?: unknown; readonly else?: unknown }
  | { readonly op: "present"; readonly value: unknown }
  | { readonly op: "each"; readonly list: unknown; readonly name: string; readonly item: unknown }
  | { readonly op: "assert"; readonly test: unknown; readonly message: unknown; readonly value: unknown };

declare const yields: unique symbol;

/** An expression that yields a `T`. */
export interface Expr<T> {
  readonly $helm: Node;
  readonly [yields]?: T;
}

/** A known value, or an expression that yields one. */
export type Input<T> = T | Expr<T>;

/** The type that an input yields. */
export type Yield<T> = T extends Expr<infer Yielded> ? Yielded : T;

/** Prefix of a key whose value is spread into the map, see `spread`. */
export const SPREAD = "$spread ";

/** The top-level key that makes a manifest conditional, see `HelmObject`. */
export const WHEN = "$when";

/** Whether a value is an expression; it may also contain some, see `hasExpr`. */
export function isExpr(value: unknown): value is Expr<unknown> {
  return typeof value === "object" && value !== null && "$helm" in value;
}

/** Whether a value is or contains an expression. */
export function hasExpr(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return isExpr(value) || Object.values(value).some(hasExpr);
}

/** The type of an expression. */
export function kindOf(value: unknown): Kind {
  if (!isExpr(value)) return literalKind(value);
  const node = value.$helm;
  switch (node.op) {
    case "when":
      return kindOf(node.then ?? node.else);
    case "present":
    case "assert":
      return kindOf(node.value);
    case "each":
      return "list";
    default:
      return node.kind;
  }
}

function literalKind(value: unknown): Kind {
  if (Array.isArray(value)) return "list";
  const kinds: Readonly<Record<string, Kind>> = { string: "string", number: "int", boolean: "bool", object: "map" };
  return kinds[typeof value] ?? "any";
}

/** An expression for a field of a built-in object: `ref("string", "Release", "Name")`. */
export function ref<T>(kind: Kind, ...path: readonly string[]): Expr<T> {
  return { $helm: { op: "ref", path, kind } };
}
