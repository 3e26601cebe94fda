import { z } from "zod";

/*
 * Types of values that may also be text, as Helm's `--set-string` passes them; `schema.ts` writes the same to the JSON
 * schema.
 */
const numeric = (value: unknown): unknown =>
  typeof value === "string" && /^(0|-?[1-9][0-9]*)$/.test(value) ? Number(value) : value;

const logical = (value: unknown): unknown => (value === "true" ? true : value === "false" ? false : value);

const textual = (value: unknown): unknown => (typeof value === "number" ? String(value) : value);

/** A whole number. */
export const integer = (low: number, high: number) => z.preprocess(numeric, z.int().min(low).max(high));

/** A boolean. */
export const flag = () => z.preprocess(logical, z.boolean());

/** A text that may look like a number, such as a list of one port: Helm then passes a number. */
export const numberOrText = <T extends z.ZodType<string>>(schema: T) => z.preprocess(textual, schema);
