import { type Expr, isExpr, kindOf, type Node, SPREAD, WHEN } from "./expression";
import { inOrder, yamlScalar } from "./yaml";

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

/** The position of a value: its depth, and the expression for the root there. */
interface Spot extends Place {
  readonly depth: number;
}

/** One manifest as the text of a template file. */
export function writeTemplate(manifest: Readonly<Record<string, unknown>>): string {
  const { [WHEN]: test, ...body } = manifest;
  const spot: Spot = { depth: 0, root: "" };
  const lines = closed(writeMap(body, spot));
  return `${(isExpr(test) ? guarded(test, lines, spot) : lines).join("\n")}\n`;
}

/** YAML's document end marker. Helm keeps the white space before it. */
const DOCUMENT_END = "...";

/** Lists of whole manifests as the text of a template file. The manifests are data: Helm does not render them. */
export function writeLists(lists: readonly Expr<unknown>[]): string {
  const spot: Spot = { depth: 0, root: "" };
  const lines = lists.flatMap((list) => [
    action(spot, `range ${pipeline(list, spot)}`),
    "---",
    "{{ toYaml . }}",
    DOCUMENT_END,
    action(spot, "end"),
  ]);
  return `${lines.join("\n")}\n`;
}

const opensBlock = /^ *\{\{- (if|range|with) /;

/** Helm trims all Unicode white space from the end of a rendered template, so a value's text must not be last. */
function closed(lines: readonly string[]): readonly string[] {
  let depth = 0;
  let mayEndInValue = false;
  for (const line of lines) {
    if (opensBlock.test(line)) depth += 1;
    else if (line.trim() === "{{- end }}") depth -= 1;
    else if (line.includes(" | nindent ")) mayEndInValue = true;
    else if (depth === 0) mayEndInValue = false;
  }
  return mayEndInValue ? [...lines, DOCUMENT_END] : lines;
}

/** A value as the body of a named template, not indented. */
export function writeDefinition(name: string, value: Readonly<Record<string, unknown>>): string {
  return [`{{- define ${goString(name)} -}}`, ...writeMap(value, { depth: 0, root: "" }), "{{- end }}", ""].join("\n");
}

const pad = (spot: Spot): string => "  ".repeat(spot.depth);
const deeper = (spot: Spot): Spot => ({ ...spot, depth: spot.depth + 1 });
const action = (spot: Spot, text: string): string => `${pad(spot)}{{- ${text} }}`;

/** A pipeline as an argument. */
const parenthesized = (expr: string): string => (expr.includes(" ") ? `(${expr})` : expr);

/** A whole map or list that Helm renders, indented for its position. */
function dumped(expr: string, spot: Spot): string {
  return action(spot, `toYaml ${parenthesized(expr)} | nindent ${spot.depth * 2}`);
}

function block(value: Expr<unknown>, spot: Spot): string {
  return action(spot, `${pipeline(value, spot)} | nindent ${spot.depth * 2}`);
}

function guarded(
  test: Expr<unknown>,
  then: readonly string[],
  spot: Spot,
  otherwise: readonly string[] = [],
): string[] {
  const alternative = otherwise.length > 0 ? [action(spot, "else"), ...otherwise] : [];
  return [action(spot, `if ${pipeline(test, spot)}`), ...then, ...alternative, action(spot, "end")];
}

/** A scalar after a key or a dash: text is quoted, numbers and booleans are not. */
function scalar(value: unknown, spot: Spot): string {
  if (!isExpr(value)) return literalScalar(value);
  const kind = kindOf(value);
  if (kind === "string") return `{{ ${quoted(value, spot)} }}`;
  return `{{ ${pipeline(value, spot)}${kind === "any" ? " | toJson" : ""} }}`;
}

function literalScalar(value: unknown): string {
  if (typeof value === "string" && value.includes("{{")) return `{{ ${goString(value)} | quote }}`;
  return yamlScalar(value as string | number | boolean);
}

/** `quote` converts numbers to text, so a `toString` before it is redundant. */
function quoted(value: Expr<unknown>, spot: Spot): string {
  const node = value.$helm;
  const inner = node.op === "call" && node.name === "toString" && isExpr(node.subject) ? node.subject : value;
  return `${pipeline(inner, spot)} | quote`;
}

function isCollection(value: unknown): boolean {
  return ["map", "list"].includes(kindOf(value));
}

function isEmpty(value: unknown): boolean {
  return !isExpr(value) && typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

const empty = (collection: unknown): string => (Array.isArray(collection) ? "[]" : "{}");

type Lines = (value: unknown, spot: Spot) => readonly string[];

/** Writes the condition of a key or an item as a block around it, and the rest by `plain`. */
function decided(value: unknown, spot: Spot, plain: Lines): readonly string[] {
  const node: Node | undefined = isExpr(value) ? value.$helm : undefined;
  switch (node?.op) {
    case "when": {
      const otherwise = node.else === undefined ? [] : decided(node.else, spot, plain);
      return guarded(node.test as Expr<unknown>, decided(node.then, spot, plain), spot, otherwise);
    }
    case "present":
      return presence(node.value as Expr<unknown>, spot, plain);
    case "assert": {
      const failure = action(deeper(spot), `fail ${failureMessage(node.message, spot)}`);
      return [...guarded(inverse(node.test), [failure], spot), ...decided(node.value, spot, plain)];
    }
    default:
      return plain(value, spot);
  }
}

/** The negation of a test, without double negation. */
function inverse(test: unknown): Expr<unknown> {
  const node = isExpr(test) ? test.$helm : undefined;
  if (node?.op === "call" && node.name === "not" && isExpr(node.subject)) return node.subject;
  return { $helm: { op: "call", name: "not", subject: test, kind: "bool" } };
}

function failureMessage(message: unknown, spot: Spot): string {
  return isExpr(message) ? `(${pipeline(message, spot)})` : goString(String(message));
}

function presence(value: Expr<unknown>, spot: Spot, plain: Lines): readonly string[] {
  const dot: Expr<unknown> = { $helm: { op: "ref", path: [], kind: kindOf(value) } };
  return [action(spot, `with ${pipeline(value, spot)}`), ...plain(dot, { ...spot, root: "" }), action(spot, "end")];
}

function writeMap(map: Readonly<Record<string, unknown>>, spot: Spot): readonly string[] {
  const entries = inOrder(map).filter(([, value]) => value !== undefined);
  const own = entries.filter(([key]) => !key.startsWith(SPREAD));
  const [spread, ...others] = entries.filter(([key]) => key.startsWith(SPREAD)).map(([, value]) => value);
  if (others.length > 0) throw new Error("one map can be spread into another: merge several before");
  const lines = own.flatMap(([key, value]) => decided(value, spot, (item, at) => entry(key, item, at)));
  const keys = own.map(([key]) => key);
  return isExpr(spread) ? [...lines, ...spreadLines(spread, keys, spot)] : lines;
}

/** The entries of another map, except those written explicitly and those that users removed by null. */
function spreadLines(map: Expr<unknown>, own: readonly string[], spot: Spot): readonly string[] {
  const keys = own.map(goString).join(" ");
  const written = pipeline(map, spot);
  const others = keys === "" ? written : `omit ${parenthesized(written)} ${keys}`;
  return [
    action(spot, `range $key, $value := ${others}`),
    action(spot, 'if not (kindIs "invalid" $value)'),
    `${pad(spot)}{{ $key | quote }}: {{ $value | toJson }}`,
    action(spot, "end"),
    action(spot, "end"),
  ];
}

function entry(key: string, value: unknown, spot: Spot): readonly string[] {
  const name = `${pad(spot)}${literalScalar(key)}:`;
  if (isEmpty(value)) return [`${name} ${empty(value)}`];
  if (isExpr(value) && kindOf(value) === "block") return [`${name} |-`, block(value, deeper(spot))];
  if (!isCollection(value)) return [`${name} ${scalar(value, spot)}`];
  const lines = [name, ...collection(value, deeper(spot))];
  const spread = onlySpread(value);
  if (spread === undefined) return lines;
  const values = `values ${parenthesized(pipeline(spread, spot))}`;
  return [action(spot, `if without (${values}) nil`), ...lines, action(spot, "end")];
}

/** The map that a map consists of: if it has no entries, its key is left out. */
function onlySpread(value: unknown): Expr<unknown> | undefined {
  const [[key, map] = ["", undefined], ...others] = isExpr(value) ? [] : Object.entries(value as object);
  return key.startsWith(SPREAD) && others.length === 0 && isExpr(map) ? map : undefined;
}

function collection(value: unknown, spot: Spot): readonly string[] {
  if (Array.isArray(value)) return value.filter((item) => item !== undefined).flatMap((item) => listItem(item, spot));
  if (!isExpr(value)) return writeMap(value as Readonly<Record<string, unknown>>, spot);
  return value.$helm.op === "each"
    ? ranged(value.$helm, spot, [action(spot, "else"), `${pad(spot)}[]`])
    : [dumped(pipeline(value, spot), spot)];
}

/** Items that Helm renders from a list. */
function ranged(node: Extract<Node, { op: "each" }>, spot: Spot, otherwise: readonly string[] = []): readonly string[] {
  const list = pipeline(node.list as Expr<unknown>, spot);
  const inside: Spot = { ...spot, root: "$" };
  return [
    action(spot, `range $${node.name} := ${list}`),
    ...listItem(node.item, inside),
    ...otherwise,
    action(spot, "end"),
  ];
}

function listItem(value: unknown, spot: Spot): readonly string[] {
  if (isExpr(value) && value.$helm.op === "each") return ranged(value.$helm, spot);
  return decided(value, spot, plainItem);
}

function plainItem(value: unknown, spot: Spot): readonly string[] {
  if (isExpr(value) && kindOf(value) === "list") return [dumped(pipeline(value, spot), spot)];
  if (isEmpty(value) || !isCollection(value)) {
    return [`${pad(spot)}- ${isEmpty(value) ? empty(value) : scalar(value, spot)}`];
  }
  return dashed(collection(value, deeper(spot)), spot);
}

/** Writes the dash of an item before its first line. */
function dashed(lines: readonly string[], spot: Spot): readonly string[] {
  const [firstLine = "", ...others] = lines;
  const start = `${pad(spot)}  `;
  const fits = firstLine.startsWith(start) && !firstLine.startsWith(`${start}{{-`);
  return fits ? [`${pad(spot)}- ${firstLine.slice(start.length)}`, ...others] : [`${pad(spot)}-`, ...lines];
}
