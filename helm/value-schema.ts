import { z } from "zod";
import { flag, integer, numberOrText } from "./loose-types";

/**
 * A schema that reads a `T`, as `valuesOf` makes it for the values of a chart. A zod 4 object is also one, for types
 * that the functions here do not cover.
 */
export interface Schema<T> {
  readonly "~standard": { readonly types?: { readonly output: T } | undefined };
}

/** The type that a schema reads: `ValuesIn<typeof values>`. */
export type ValuesIn<S> = S extends Schema<infer T> ? T : never;

/** Describes a value in the documents of a chart. */
export interface AboutValue<T> {
  readonly description: string;
  /** The default. @default none: the value may be absent */
  readonly default?: T | undefined;
  /** @default none */
  readonly examples?: readonly T[] | undefined;
}

/** A whole number. */
export interface AboutInteger extends AboutValue<number> {
  readonly min: number;
  readonly max: number;
}

/** A text. */
export interface AboutString extends AboutValue<string> {
  /** The pattern that the text must match. @default any text */
  readonly pattern?: RegExp | undefined;
  /** The problem of a text that does not match: `"x" …`. @default "does not match" and the pattern */
  readonly wrong?: string | undefined;
  /** Accept a number, such as a tag `1`, and read it as text. @default false */
  readonly orNumber?: boolean | undefined;
}

/** Maps and lists whose items this library does not check. */
type AnyMap = Readonly<Record<string, unknown>>;
type Texts = Readonly<Record<string, string>>;

/** A value with a default is always there. */
type Read<T, About> = About extends { readonly default: T } ? T : T | undefined;

function described<T>(schema: z.ZodType, about: AboutValue<unknown>): Schema<T> {
  const { description, default: usual, examples } = about;
  const filled = usual === undefined ? schema.optional() : schema.default(usual as never);
  return filled.meta({ description, ...(examples === undefined ? {} : { examples: [...examples] }) }) as Schema<T>;
}

function stringOf({ pattern, wrong, orNumber }: AboutString): z.ZodType {
  const text = pattern === undefined ? z.string() : z.string().regex(pattern, wrong ?? `does not match ${pattern}`);
  return orNumber === true ? numberOrText(text) : text;
}

/** The types of values in a chart. Numbers and booleans may be text, as `--set-string` passes them. */
export const value = {
  integer: <About extends AboutInteger>(about: About): Schema<Read<number, About>> =>
    described(integer(about.min, about.max), about),
  boolean: <About extends AboutValue<boolean>>(about: About): Schema<Read<boolean, About>> => described(flag(), about),
  string: <About extends AboutString>(about: About): Schema<Read<string, About>> => described(stringOf(about), about),
  /** One of a few texts. */
  choice: <const Choice extends string, About extends AboutValue<Choice>>(
    choices: readonly Choice[],
    about: About,
  ): Schema<Read<Choice, About>> => described(z.enum(choices as readonly [Choice]), about),
  /** Texts by name, such as labels. */
  map: <About extends AboutValue<Texts>>(about: About): Schema<Read<Texts, About>> =>
    described(z.record(z.string(), z.string()), about),
  /** A part of a manifest, such as an affinity: the API server knows its fields. */
  object: <About extends AboutValue<AnyMap>>(about: About): Schema<Read<AnyMap, About>> =>
    described(z.record(z.string(), z.unknown()), about),
  /** A list of texts or of parts of a manifest, such as tolerations. */
  list: <Item = AnyMap>(about: AboutValue<readonly Item[]>): Schema<readonly Item[]> =>
    described(z.array(z.unknown()), { default: [], ...about }),
} as const;

/** Values by name. A nested map is a group, and so are the values of a construct. */
export interface ValueMembers {
  readonly [name: string]: Schema<unknown> | ValueMembers;
}

/** The result of reading values. */
export type ValuesOf<Members> = {
  readonly [Name in keyof Members]: Members[Name] extends Schema<infer T> ? T : ValuesOf<Members[Name]>;
};

const isSchema = (member: Schema<unknown> | ValueMembers): member is Schema<unknown> => "~standard" in member;

function objectOf(members: ValueMembers): z.ZodObject {
  const shape = Object.entries(members).map(([name, member]) => {
    const field = isSchema(member) ? (member as unknown as z.ZodType) : objectOf(member);
    return [name, field instanceof z.ZodObject ? field.prefault({}) : field] as const;
  });
  return z.strictObject(Object.fromEntries(shape));
}

/** The schema of a chart's values. */
export function valuesOf<Members extends ValueMembers>(members: Members): Schema<ValuesOf<Members>> {
  return objectOf(members) as unknown as Schema<ValuesOf<Members>>;
}
