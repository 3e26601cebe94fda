import { isExpr } from "../helm/index";

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !isExpr(value);

/** Merges one map over another recursively; lists and scalars are replaced. */
export function overlaid(base: Fields, over: Fields): Fields {
  const entries = Object.entries(over).map(([key, value]) => {
    const under = base[key];
    return [key, isFields(under) && isFields(value) ? overlaid(under, value) : value];
  });
  return { ...base, ...Object.fromEntries(entries) };
}
