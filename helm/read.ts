import { isExpr } from "./expression";
import { choicesText, isValue, type TextForm, type Value, type ValueMembers, type ValuesIn } from "./value";

type Fields = Readonly<Record<string, unknown>>;
type Path = readonly string[];

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !isExpr(value);

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

/** A map without what is not given. */
const present = (entries: readonly (readonly [string, unknown])[]): Fields =>
  Object.fromEntries(entries.filter(([, value]) => isGiven(value)));

/** Data without the nulls in its maps, as Helm removes them. */
function withoutNulls(given: unknown): unknown {
  if (Array.isArray(given)) return given.map(withoutNulls);
  if (!isFields(given)) return given;
  return present(Object.entries(given).map(([key, value]) => [key, withoutNulls(value)]));
}

/** Merges one map over another recursively, as Helm merges values; lists and scalars are replaced. */
export function overlaid(base: Fields, over: Fields): Fields {
  const entries = Object.entries(over).map(([key, value]) => {
    const under = base[key];
    return [key, isFields(under) && isFields(value) ? overlaid(under, value) : value];
  });
  return { ...base, ...Object.fromEntries(entries) };
}

/** The name that was probably meant: it differs in at most two neighbouring letters, the fewer the better. */
export const nearest = (name: string, known: readonly string[]): string | undefined =>
  [0, 1, 2]
    .flatMap((letters) => known.map((other) => ({ letters, other })))
    .find(({ letters, other }) =>
      [...other].some((_, at) =>
        new RegExp(`^${other.slice(0, at)}.{0,${letters + 1}}${other.slice(at + letters)}$`, "i").test(name),
      ),
    )?.other;

/** A value of the type that it may also be given as text, or a text that may be given as a number. */
function converted({ kind, form }: Value, given: unknown): unknown {
  const accepts = (type: string): boolean => Array.isArray(form["type"]) && form["type"].includes(type);
  if (typeof given === "string" && kind === "int" && accepts("string")) {
    return /^(0|-?[1-9][0-9]*)$/.test(given) ? Number(given) : given;
  }
  if (kind === "bool" && (given === "true" || given === "false")) return given === "true";
  return kind === "string" && accepts("number") && typeof given === "number" ? String(given) : given;
}

/** The default of a value. */
export const defaultOf = (value: Value): unknown => converted(value, value.about.default);

function textProblems(text: unknown, { pattern, wrong = `does not match ${pattern}` }: TextForm): readonly string[] {
  if (typeof text !== "string") return ["is not of type string"];
  return pattern === undefined || pattern.test(text) ? [] : [wrong];
}

function integerProblems(given: unknown, minimum: number, maximum: number): readonly string[] {
  if (typeof given !== "number") return ["is not of type number"];
  if (!Number.isInteger(given)) return ["is not a whole number"];
  if (given < minimum) return [`is less than ${minimum}`];
  return given > maximum ? [`is more than ${maximum}`] : [];
}

function stringProblems({ form, about }: Value, given: unknown): readonly string[] {
  const choices = form["enum"] as readonly string[] | undefined;
  if (choices !== undefined) return choices.includes(given as string) ? [] : [`is not one of ${choicesText(choices)}`];
  if (Array.isArray(given) && given.every((item) => ["number", "string"].includes(typeof item))) {
    return [`is a list: write "${given.join(",")}"`];
  }
  if (given === "" && about.notEmpty === true) return ["is empty"];
  if (String(given).length > (about.maxLength ?? Number.POSITIVE_INFINITY)) {
    return [`is longer than ${about.maxLength} characters`];
  }
  const problems = textProblems(given, about);
  return problems.length > 0 ? problems : (about.check?.(String(given)) ?? []);
}

/** The problems of a value that is not a list, a map or an object. */
function scalarProblems(value: Value, given: unknown): readonly string[] {
  const { kind, form, about } = value;
  if (kind === "int") return integerProblems(given, Number(form["minimum"]), Number(form["maximum"]));
  if (kind === "bool") return typeof given === "boolean" ? [] : ["is not of type boolean"];
  if (kind === "string") return stringProblems(value, given);
  return typeof given === "number" && given >= 0 ? [] : textProblems(given, about).map(() => about.wrong ?? "");
}

/** Reads given values as Helm merges them over a chart's: null removes a value, and empties a map. */
export class Reader {
  /** One sentence each. */
  readonly problems: string[] = [];

  /** @param absent the value of one that is not given */
  constructor(private readonly absent: (value: Value, path: Path) => unknown) {}

  group(members: ValueMembers, given: unknown, path: Path = []): Fields {
    const values =
      given === null ? Object.fromEntries(Object.keys(members).map((name) => [name, null])) : (given ?? {});
    if (!isFields(values)) return this.group(members, this.refuse(path, given, ["is not of type object"]), path);
    this.refuseUnknown(members, values, path);
    const entries = Object.entries(members).map(([name, member]) => {
      const at = [...path, name];
      return [name, isValue(member) ? this.member(member, values[name], at) : this.group(member, values[name], at)];
    });
    return present(entries as [string, unknown][]);
  }

  private member(value: Value, given: unknown, path: Path): unknown {
    if (given === null && value.kind === "map") return {};
    return isGiven(given) ? this.value(value, given, path) : this.absent(value, path);
  }

  value(value: Value, given: unknown, path: Path): unknown {
    if (isExpr(given)) return given;
    if (value.kind === "list") return this.list(value, given, path);
    if (value.kind === "map") return this.map(value, given, path);
    if (value.kind === "object") return this.object(value, given, path);
    const read = converted(value, given);
    const problems = scalarProblems(value, read);
    return problems.length === 0 ? read : this.refuse(path, given, problems);
  }

  private list({ members, texts, isOpen }: Value, given: unknown, path: Path): unknown {
    if (!Array.isArray(given)) return this.refuse(path, given, ["is not of type array"]);
    if (members !== undefined)
      return given.map((item, at) => this.object({ members, isOpen }, item, [...path, `${at}`]));
    if (texts !== undefined) for (const [at, item] of given.entries()) this.text(texts, item, [...path, `${at}`]);
    return withoutNulls(given);
  }

  private map({ about, keys = {}, texts }: Value, given: unknown, path: Path): unknown {
    if (!isFields(given)) return this.refuse(path, given, ["is not of type object"]);
    const read = withoutNulls(overlaid((about.default ?? {}) as Fields, given)) as Fields;
    for (const [key, item] of Object.entries(texts === undefined ? {} : read)) {
      for (const problem of textProblems(key, keys)) this.problems.push(`${[...path, key].join(".")}: ${problem}`);
      this.text(texts ?? {}, item, [...path, key]);
    }
    return read;
  }

  private text(form: TextForm, given: unknown, path: Path): void {
    const problems = isExpr(given) ? [] : textProblems(given, form);
    if (problems.length > 0) this.refuse(path, given, problems);
  }

  private object({ members = {}, isOpen }: Pick<Value, "members" | "isOpen">, given: unknown, path: Path): unknown {
    if (isExpr(given)) return given;
    if (!isFields(given)) return this.refuse(path, given, ["is not of type object"]);
    if (isOpen !== true) this.refuseUnknown(members, given, path);
    const checked = Object.entries(members).map(([name, member]) => {
      const [item, at] = [given[name], [...path, name]];
      if (isGiven(item)) return [name, this.value(member, item, at)] as const;
      const isMissing = member.about.required === true;
      return [
        name,
        isMissing ? this.refuse(at, undefined, scalarProblems(member, undefined)) : defaultOf(member),
      ] as const;
    });
    return { ...(withoutNulls(given) as Fields), ...present(checked) };
  }

  private refuseUnknown(members: ValueMembers, given: Fields, path: Path): void {
    const unknown = Object.keys(given).filter((name) => given[name] !== undefined && !Object.hasOwn(members, name));
    for (const name of unknown) {
      const meant = nearest(name, Object.keys(members));
      const guess = meant === undefined ? "" : `: did you mean ${[...path, meant].join(".")}?`;
      this.problems.push(`${[...path, name].join(".")} is not a value${guess}`);
    }
  }

  private refuse(path: Path, given: unknown, problems: readonly string[]): undefined {
    const shown = given === undefined ? "is missing and" : JSON.stringify(given);
    this.problems.push(...problems.map((problem) => `${path.join(".")}: ${shown} ${problem}`));
  }
}

/** Given values with the defaults of the others, and the problems of the given ones. */
export function readValues<M extends ValueMembers>(values: M, given: object) {
  const reader = new Reader(defaultOf);
  const read = reader.group(values, given) as ValuesIn<M>;
  return { values: read, problems: reader.problems as readonly string[] };
}
