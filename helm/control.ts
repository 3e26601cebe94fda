import { type Expr, hasExpr, type Input, isExpr, kindOf, SPREAD, type Yield } from "./expression";
import { isTrue } from "./go-values";

/** The value where the test holds, else the other one; without another one the key or the item is left out. */
export function when<A, B = undefined>(
  test: Input<unknown>,
  then: A,
  otherwise?: B,
): A | B | Expr<Yield<A> | Yield<B>> {
  if (!isExpr(test)) return isTrue(test) ? then : (otherwise as B);
  return { $helm: { op: "when", test, then, ...(otherwise === undefined ? {} : { else: otherwise }) } };
}

/** The value, or nothing where it is empty: the key or the item is left out. */
export function present<T>(value: Input<T> | undefined): Input<T> | undefined {
  if (isExpr(value)) return { $helm: { op: "present", value } };
  return isTrue(value) ? value : undefined;
}

/**
 * A list made of another one, item by item.
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

/** Items of a list that stand among others: `[a, ...items(b)]`. */
export function items<T>(list: readonly T[] | Expr<readonly Yield<T>[]>): readonly (T | Expr<Yield<T>>)[] {
  return isExpr(list) ? [list as unknown as Expr<Yield<T>>] : list;
}

/** Entries of a map that stand among others: `{ ...spread(map), key: value }`; a key written out wins. */
export function spread<T>(map: Input<Readonly<Record<string, T>>>): Readonly<Record<string, T>> {
  if (!isExpr(map)) return map;
  // A key of its own for each map, so that none takes another's place.
  return { [`${SPREAD}${JSON.stringify(map)}`]: map } as unknown as Record<string, T>;
}

/** The value, on condition: where the test fails, nothing is rendered and the message is the error. */
export function assert<T>(test: Input<boolean>, message: Input<string>, value: Input<T>): Input<T> {
  if (isExpr(test)) return { $helm: { op: "assert", test, message, value } };
  if (!isTrue(test)) throw new Error(hasExpr(message) ? `a check on a ${kindOf(value)} failed` : String(message));
  return value;
}
