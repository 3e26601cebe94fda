/** Reads assignments such as `image.name=x,tolerations[0].operator=Exists` as helm's `--set` does. */

type Map = Record<string, unknown>;
type Step = string | number;

/** How the text after `=` becomes a value. */
export type ReadValue = (text: string) => unknown;

const words: Readonly<Record<string, unknown>> = { true: true, false: false, null: null };

/** `--set`: booleans, null and whole numbers are taken as such. */
export const typed: ReadValue = (text) => {
  if (Object.hasOwn(words, text)) return words[text];
  return /^(0|-?[1-9][0-9]{0,15})$/.test(text) ? Number(text) : text;
};

/** `--set-string`: everything is text. */
export const asText: ReadValue = (text) => text;

/** Cuts at a separator that is neither escaped by a backslash nor within braces; escapes stay. */
function cut(text: string, separator: string): readonly string[] {
  const parts = [""];
  let depth = 0;
  for (const [token] of text.matchAll(/\\.|./gsu)) {
    if (token === "{") depth++;
    if (token === "}") depth--;
    if (token === separator && depth === 0) parts.push("");
    else parts.push(`${parts.pop() ?? ""}${token}`);
  }
  return parts;
}

const unescaped = (text: string): string => text.replace(/\\(.)/gsu, "$1");

function path(text: string): readonly Step[] {
  return cut(text, ".").flatMap((part) => {
    const [, name = "", indices = ""] = /^(.*?)((?:\[\d+\])*)$/su.exec(part) ?? [];
    return [unescaped(name), ...[...indices.matchAll(/\d+/g)].map(([index]) => Number(index))];
  });
}

function value(text: string, read: ReadValue): unknown {
  const list = /^\{(.*)\}$/su.exec(text)?.[1];
  if (list === undefined) return read(unescaped(text));
  return list === "" ? [] : cut(list, ",").map((item) => read(unescaped(item.trim())));
}

/** Puts a value at a path, making the maps and lists that lead to it. */
function assign(target: unknown, [step, ...rest]: readonly Step[], set: unknown): unknown {
  if (step === undefined) return set;
  if (typeof step === "number") {
    const list = Array.isArray(target) ? [...target] : [];
    list[step] = assign(list[step], rest, set);
    return list;
  }
  const map: Map = typeof target === "object" && target !== null && !Array.isArray(target) ? (target as Map) : {};
  return { ...map, [step]: assign(map[step], rest, set) };
}

function assignment(text: string): readonly [string, string] {
  const [name = "", ...rest] = cut(text, "=");
  if (name === "" || rest.length === 0) throw new Error(`"${text}" is not an assignment: write name=value`);
  return [name, rest.join("=")];
}

/** Values with some assignments, comma-separated, made on top. */
export function withAssignments(values: Map, text: string, read: ReadValue): Map {
  return cut(text, ",").reduce((made, part) => {
    const [name, given] = assignment(part);
    return assign(made, path(name), value(given, read)) as Map;
  }, values);
}

/** `--set-file`: the value is a file's content. */
export function withFile(values: Map, text: string, readFile: (path: string) => string): Map {
  return cut(text, ",").reduce((made, part) => {
    const [name, file] = assignment(part);
    return assign(made, path(name), readFile(unescaped(file))) as Map;
  }, values);
}
