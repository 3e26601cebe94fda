/** A part of a JSON schema. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Describes a value in the documents of a chart. */
export interface AboutValue<T> {
  /** The meaning of the value, for values.yaml, the schema and the README. */
  readonly description: string;
  /** The default. @default none: the value may be absent */
  readonly default?: T | undefined;
  /** Example values for the documents. @default none */
  readonly examples?: readonly T[] | undefined;
  /** Whether a member of an object must be given. @default false */
  readonly required?: true;
}

/** A whole number. */
export interface AboutInteger extends AboutValue<number> {
  /** The least number. */
  readonly min: number;
  /** The greatest number. */
  readonly max: number;
  /** Refuse a number that is text; for members of objects, which templates do not convert. @default false */
  readonly isStrict?: true;
}

/** The form of a text. */
export interface TextForm {
  /** The pattern that the text must match. @default any text */
  readonly pattern?: RegExp | undefined;
  /** The problem of a text that does not match: `"x" …`. @default "does not match" and the pattern */
  readonly wrong?: string | undefined;
}

/** A text. */
export interface AboutString extends AboutValue<string>, TextForm {
  /** Refuse the empty text. @default false */
  readonly notEmpty?: true;
  /** The greatest number of characters. @default any length */
  readonly maxLength?: number;
  /** The problems that a pattern cannot find. A JSON schema does not contain them. @default none */
  readonly check?: (text: string) => readonly string[];
}

/** A text that looks like a number, such as a tag `1`: Helm then passes a number. */
export interface AboutNumericString extends Omit<AboutString, "default" | "examples">, AboutValue<string | number> {
  /** The JSON schema of the number. */
  readonly number?: JsonSchema;
}

/** Texts by name. */
export interface AboutMap extends AboutValue<Readonly<Record<string, string>>> {
  /** The form of the names. @default any */
  readonly keys?: TextForm;
  /** The form of the texts. @default any */
  readonly texts?: TextForm;
}

/** Parts of a manifest. */
export interface AboutObject {
  /** Members that are checked. @default none: the API server knows them */
  readonly members?: Members;
  /** Accept other members too. @default false */
  readonly isOpen?: true;
}

type Kind = "int" | "bool" | "string" | "quantity" | "list" | "map" | "object";

/** A value of a chart: its type, and what the documents say about it. */
export interface Value<T = unknown, Given = T> {
  /** Decides how templates read it. */
  readonly kind: Kind;
  /** What it was declared with. */
  readonly about: AboutValue<unknown> & Omit<AboutString, keyof AboutValue<string>>;
  /** The JSON schema of a given value, without that of members. */
  readonly form: JsonSchema;
  /** The members of an object, or of the objects in a list. @default not checked */
  readonly members?: Members | undefined;
  /** Whether other members are accepted too. @default false */
  readonly isOpen?: true | undefined;
  /** The forms of the names and texts of a map, or of the texts in a list. @default not checked */
  readonly keys?: TextForm;
  readonly texts?: TextForm;
  /** Only for the compiler. */
  readonly "~types"?: { readonly read: T; readonly given: Given };
}

type Members = Readonly<Record<string, Value>>;

/** Values by name. A nested map is a group, and so are the values of a construct. */
export interface ValueMembers {
  readonly [name: string]: Value | ValueMembers;
}

/** The types that reading values yields. */
export type ValuesIn<M> = {
  readonly [Name in keyof M]: M[Name] extends Value<infer T, infer _> ? T : ValuesIn<M[Name]>;
};

/** A value with a default, or a required one, is always there. */
type Read<T, About> = About extends { readonly default: unknown } | { readonly required: true } ? T : T | undefined;

type ReadOf<V> = V extends Value<infer T, infer _> ? T : never;
type OptionalIn<M> = { [Name in keyof M]: undefined extends ReadOf<M[Name]> ? Name : never }[keyof M];

type AnyMap = Readonly<Record<string, unknown>>;

/** The type of an object: its members, and any others if it is open. */
type ObjectOf<About> = About extends { readonly members: infer M }
  ? { readonly [Name in Exclude<keyof M, OptionalIn<M>>]: ReadOf<M[Name]> } & {
      readonly [Name in OptionalIn<M>]?: ReadOf<M[Name]>;
    } & (About extends { readonly isOpen: true } ? AnyMap : unknown)
  : AnyMap;

/** Whole numbers as text, with as many digits as the largest. */
function digits(min: number, max: number): string {
  const length = Math.max(...[min, max].map((end) => String(Math.abs(end)).length));
  return `^(${min > 0 ? "" : "0|"}${min < 0 ? "-?" : ""}[1-9][0-9]{0,${length - 1}})$`;
}

const textForm = ({ pattern }: TextForm): JsonSchema => (pattern === undefined ? {} : { pattern: pattern.source });

const stringForm = (about: AboutString | AboutNumericString): JsonSchema => ({
  ...(about.notEmpty === undefined ? {} : { minLength: 1 }),
  ...(about.maxLength === undefined ? {} : { maxLength: about.maxLength }),
  ...textForm(about),
});

const QUANTITY = {
  pattern: /^([+-]?[0-9.]+([eEinumkKMGTP]*[-+]?[0-9]*))?$/,
  wrong: "is not a quantity such as 100m or 64Mi",
};

/** The types of values in a chart. Numbers and booleans may be text, as `--set-string` passes them. */
export const value = {
  /** A whole number, which may be given as text. */
  integer<About extends AboutInteger>(about: About): Value<Read<number, About>> {
    const { min, max, isStrict } = about;
    const limits = { minimum: min, maximum: max };
    const loose = { type: ["integer", "string"], ...limits, pattern: digits(min, max) };
    return { kind: "int", about, form: isStrict === true ? { type: "integer", ...limits } : loose };
  },
  /** `true` or `false`, which may be given as text. */
  boolean<About extends AboutValue<boolean>>(about: About): Value<Read<boolean, About>> {
    return { kind: "bool", about, form: { type: ["boolean", "string"], enum: [true, false, "true", "false"] } };
  },
  /** A text. */
  string<About extends AboutString>(about: About): Value<Read<string, About>> {
    return { kind: "string", about, form: { type: "string", ...stringForm(about) } };
  },
  /** A text that may be given as a number. */
  numericString<About extends AboutNumericString>(about: About): Value<Read<string, About>, string | number> {
    return { kind: "string", about, form: { type: ["string", "number"], ...stringForm(about), ...about.number } };
  },
  /** One of a few texts. */
  choice<const Choice extends string, About extends AboutValue<Choice>>(
    choices: readonly Choice[],
    about: About,
  ): Value<Read<Choice, About>> {
    return { kind: "string", about, form: { type: "string", enum: choices } };
  },
  /** A quantity of Kubernetes, such as `100m`, or nothing. */
  quantity<About extends AboutValue<string | number>>(about: About): Value<Read<string | number, About>> {
    const form = {
      anyOf: [
        { type: "string", ...textForm(QUANTITY) },
        { type: "number", minimum: 0 },
      ],
    };
    return { kind: "quantity", about: { ...about, ...QUANTITY }, form };
  },
  /** Texts by name, such as labels. */
  map<About extends AboutMap>(about: About): Value<Read<Readonly<Record<string, string>>, About>> {
    const { keys = {}, texts = {} } = about;
    const propertyNames = { type: "string", ...textForm(keys) };
    const additionalProperties = { type: ["string", "null"], ...textForm(texts) };
    return { kind: "map", about, form: { type: "object", propertyNames, additionalProperties }, keys, texts };
  },
  /** A part of a manifest, such as an affinity. */
  object<About extends AboutValue<AnyMap> & AboutObject>(about: About): Value<Read<ObjectOf<About>, About>> {
    const { members, isOpen } = about;
    const free = { propertyNames: { type: "string" }, additionalProperties: {} };
    if (members === undefined) return { kind: "map", about, form: { type: "object", ...free } };
    return { kind: "object", about, form: { type: "object" }, members, isOpen };
  },
  /** A list of parts of a manifest, such as tolerations. */
  list<About extends AboutValue<readonly AnyMap[]> & AboutObject>(
    about: About,
  ): Value<Read<readonly ObjectOf<About>[], About>> {
    const { members, isOpen } = about;
    const items = members === undefined ? { items: {} } : {};
    return { kind: "list", about, form: { type: "array", ...items }, members, isOpen };
  },
  /** A list of texts. */
  texts<About extends AboutValue<readonly string[]>>(about: About): Value<Read<readonly string[], About>> {
    return { kind: "list", about, form: { type: "array", items: { type: "string" } }, texts: {} };
  },
} as const;

const DESCRIPTION = Symbol.for("cdk8s-helm-chart.description");

/** A group of values with a description. */
export const group = <M extends ValueMembers>(description: string, members: M): M =>
  Object.assign({}, members, { [DESCRIPTION]: description });

/** The description of a group; undefined if it has none. */
export const descriptionOf = (members: ValueMembers): unknown => Reflect.get(members, DESCRIPTION);

/** The values of a chart. */
export const valuesOf = <M extends ValueMembers>(members: M): M => members;

export const isValue = (member: Value | ValueMembers): member is Value => typeof member.kind === "string";

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
