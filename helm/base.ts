import type { z } from "zod";

/** A schema without its wrappers (optional, default, conversion). */
export interface Base {
  readonly type: string;
  readonly schema: z.ZodType;
  /** The value may come as another type and is converted. */
  readonly loose: boolean;
  readonly optional: boolean;
}

/** Removes defaults, options and conversions around a schema. */
export function baseOf(schema: z.ZodType): Base {
  const { def } = schema as unknown as { def: { type: string; innerType?: z.ZodType; out?: z.ZodType } };
  if (def.innerType !== undefined) {
    const inner = baseOf(def.innerType);
    return { ...inner, optional: inner.optional || def.type === "optional" };
  }
  if (def.type === "pipe" && def.out !== undefined) return { ...baseOf(def.out), loose: true };
  return { type: def.type, schema, loose: false, optional: false };
}

/** The default of a value; undefined if it has none or is a group. */
export function defaultOf(schema: z.ZodType): unknown {
  const { def } = schema as unknown as { def: { innerType?: z.ZodType; defaultValue?: unknown } };
  return def.defaultValue ?? (def.innerType === undefined ? undefined : defaultOf(def.innerType));
}
