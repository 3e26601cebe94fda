import { type Expr, hasExpr, type Input, isExpr, kindOf, SPREAD, type Yield } from "./expression";
import { isTrue } from "./go-values";

/** The value if the test holds, else the other one. Without another one, the key or the item is left out. */
export function when<A, B = undefined>(
  test: Input<unknown>,
  then: A,
  otherwise?: B,
): A | B | Expr<Yield<A> | Yield<B>> {
  if (!isExpr(test)) return isTrue(test) ? then : (otherwise as B);
  return { $helm: { op: "when", test, then, ...(otherwise === undefined ? {} : { else: otherwise }) } };
}

/** The value; if it is empty, the key or the item is left out. */
export function present<T>(value: Input<T> | undefined): Input<T> | undefined {
  if (isExpr(value)) return { $helm: { op: "present", value } };
  return isTrue(value) ? value : undefined;
}

/**
 * Maps a list, item by item.
 *
 * @param name - the name of the item's variable in templates
 */
export function each<T, U>(
  list: Input<readonly T[]>,
  name: string,
  make: (item: Input<T>) => U,
): readonly Exclude<U, undefined>[] | Expr<readonly Exclude<Yield<U>, undefined>[]> {
  if (!isExpr(list)) return list.map(make).filter((item) => item !== undefined) as Exclude<U, undefined>[];
  const item: Expr<T> = { $helm: { op: "item", name, kind: "any" } };
  return { $helm: { op: "each", list, name, item: make(item) } };
}

/** Items of a list among others: `[a, ...items(b)]`. */
export function items<T>(list: readonly T[] | Expr<readonly Yield<T>[]>): readonly (T | Expr<Yield<T>>)[] {
  return isExpr(list) ? [list as unknown as Expr<Yield<T>>] : list;
}

/**
 * Entries of a map among others: `{ ...spread(map), key: value }`. Explicit keys win. Without others, the key of an empty
 * map is left out.
 */
export function spread<T>(map: Input<Readonly<Record<string, T>>>): Readonly<Record<string, T>> {
  if (!isExpr(map)) return map;
  // A unique key for each map, so that maps do not overwrite each other.
  return { [`${SPREAD}${JSON.stringify(map)}`]: map } as unknown as Record<string, T>;
}

/** The value if the test holds; otherwise rendering fails with the message. */
export function assert<T>(test: Input<boolean>, message: Input<string>, value: Input<T>): Input<T> {
  if (isExpr(test)) return { $helm: { op: "assert", test, message, value } };
  if (!isTrue(test)) throw new Error(hasExpr(message) ? `a check on a ${kindOf(value)} failed` : String(message));
  return value;
}
