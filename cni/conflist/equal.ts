type Members = Readonly<Record<string, unknown>>;

/** An object or a list. */
function hasMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null;
}

/** Whether two parsed JSON values are equal; the order of keys does not matter. */
export function sameJson(left: unknown, right: unknown): boolean {
  if (!hasMembers(left) || !hasMembers(right)) return left === right;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && sameJson(left[key], right[key]));
}
