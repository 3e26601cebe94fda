/** POSIX paths, as in `node:path`. */

/** Without empty segments, `.`, and `..` if something precedes it. */
function segments(path: string): readonly string[] {
  const kept: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "" || segment === ".") continue;
    if (segment !== "..") kept.push(segment);
    else if (kept.length > 0 && kept.at(-1) !== "..") kept.pop();
    else if (!path.startsWith("/")) kept.push(segment);
  }
  return kept;
}

/** Joins and normalizes parts; a trailing slash stays. */
export function join(...parts: readonly string[]): string {
  const path = parts.filter((part) => part !== "").join("/");
  const inner = segments(path).join("/");
  if (path.startsWith("/")) return inner === "" ? "/" : `/${inner}${path.endsWith("/") ? "/" : ""}`;
  return `${inner === "" ? "." : inner}${path.endsWith("/") ? "/" : ""}`;
}

/** Resolves a path against a directory. @param directory an absolute path. @returns a normalized absolute path */
export function resolve(directory: string, path: string): string {
  return `/${segments(path.startsWith("/") ? path : `${directory}/${path}`).join("/")}`;
}

/** Everything before the last segment. */
export function dirname(path: string): string {
  const trimmed = path.replace(/(?<=[^/])\/+$/, "");
  const slash = trimmed.lastIndexOf("/");
  return slash < 0 ? "." : trimmed.slice(0, slash) || "/";
}

/** The last segment. */
export function basename(path: string): string {
  const trimmed = path.replace(/\/+$/, "");
  return trimmed.slice(trimmed.lastIndexOf("/") + 1);
}
