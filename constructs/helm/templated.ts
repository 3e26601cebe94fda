import type { Expr } from "./expression";

type Scalar = string | number | boolean;

/** The unions that cdk8s generates, such as `Quantity`: objects that have a `value` and nothing else. */
type IsUnion<T> = T extends { readonly value: unknown }
  ? Exclude<keyof T, "value"> extends never
    ? true
    : false
  : false;

/** A `T` that is there, with expressions inside; generated unions are plain scalars. */
type Inside<T> = T extends Scalar
  ? T
  : IsUnion<T> extends true
    ? string | number
    : T extends readonly (infer Item)[]
      ? readonly (Templated<Item> | undefined)[]
      : T extends object
        ? { readonly [Key in keyof T]: Templated<T[Key]> | undefined }
        : T;

/**
 * A `T` in which an expression may stand for any part. Where a part or an expression may yield nothing, the key or
 * the item is left out.
 */
export type Templated<T> = Inside<T> | Expr<Inside<T> | undefined>;
