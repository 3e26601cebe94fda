import type { z } from "zod";

/** A schema without what surrounds it. */
export interface Base {
  readonly type: string;
  readonly schema: z.ZodType;
  /** The value may come as another type and is converted. */
  readonly loose: boolean;
  readonly optional: boolean;
}

/** What stands under defaults, options and conversions. */
export function baseOf(schema: z.ZodType): Base {
  const { def } = schema as unknown as { def: { type: string; innerType?: z.ZodType; out?: z.ZodType } };
  if (def.innerType !== undefined) {
    const inner = baseOf(def.innerType);
    return { ...inner, optional: inner.optional || def.type === "optional" };
  }
  if (def.type === "pipe" && def.out !== undefined) return { ...baseOf(def.out), loose: true };
  return { type: def.type, schema, loose: false, optional: false };
}

/** What holds where a value is not given; undefined where it has no default, or is a group. */
export function defaultOf(schema: z.ZodType): unknown {
  const { def } = schema as unknown as { def: { innerType?: z.ZodType; defaultValue?: unknown } };
  return def.defaultValue ?? (def.innerType === undefined ? undefined : defaultOf(def.innerType));
}
