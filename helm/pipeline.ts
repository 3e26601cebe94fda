import { type Expr, isExpr, type Node } from "./expression";

/** The context of a text: `root` leads to the built-in objects (`$` inside `with` or `range`). */
export interface Place {
  readonly root: "" | "$";
}

const identifier = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** A Go string literal. */
export function goString(value: string): string {
  return JSON.stringify(value);
}

/** An argument of a function. */
function argument(value: unknown, place: Place): string {
  if (!isExpr(value)) return literal(value, place);
  return enclosed(operation(value.$helm, place));
}

const enclosed = (written: string): string => (written.includes(" ") ? `(${written})` : written);

function literal(value: unknown, place: Place): string {
  if (typeof value === "string") return goString(value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return `(${["list", ...value.map((item) => argument(item, place))].join(" ")})`;
  if (typeof value !== "object" || value === null) throw new Error(`a template has no literal for ${String(value)}`);
  const entries = Object.entries(value).map(([key, item]) => `${goString(key)} ${argument(item, place)}`);
  return `(${["dict", ...entries].join(" ")})`;
}

/**
 * Users may remove whole groups of values: the parentheses make a field of an absent group empty instead of an error.
 */
function reference([object, ...keys]: readonly string[], place: Place): string {
  if (object === undefined) return place.root === "" ? "." : place.root;
  return keys.reduce((from, key, depth) => {
    const inGroup = object === "Values" && depth > 0;
    if (identifier.test(key)) return `${inGroup ? `(${from})` : enclosed(from)}.${key}`;
    return `index ${inGroup ? `(default dict ${enclosed(from)})` : enclosed(from)} ${goString(key)}`;
  }, `${place.root}.${object}`);
}

/** An operation in prefix form, for use in parentheses. */
function operation(node: Node, place: Place): string {
  switch (node.op) {
    case "ref":
      return reference(node.path, place);
    case "item":
      return `$${node.name}`;
    case "call":
      return [functionName(node.name, place), ...callArguments(node).map((value) => argument(value, place))].join(" ");
    case "when":
      return ["ternary", node.then, node.else, node.test]
        .map((part, index) => (index === 0 ? String(part) : argument(part, place)))
        .join(" ");
    default:
      throw new Error(`\`${node.op}\` stands for a key or an item, not for an argument of a function`);
  }
}

/** Methods of a built-in object begin with a dot. */
const functionName = (name: string, place: Place): string => (name.startsWith(".") ? `${place.root}${name}` : name);

function callArguments(node: Extract<Node, { op: "call" }>): readonly unknown[] {
  return [...(node.args ?? []), ...(node.subject === undefined ? [] : [node.subject])];
}

/** Functions that read better before their arguments than at the end of a pipeline. */
const prefixed: ReadonlySet<string> = new Set(["and", "eq", "ge", "le", "merge", "not", "or", "printf"]);

/** An expression as the pipeline of an action. */
export function pipeline(expr: Expr<unknown>, place: Place): string {
  const node = expr.$helm;
  if (node.op !== "call" || prefixed.has(node.name) || !isExpr(node.subject)) return operation(node, place);
  const own = [node.name, ...(node.args ?? []).map((value) => argument(value, place))].join(" ");
  return `${pipeline(node.subject, place)} | ${own}`;
}
