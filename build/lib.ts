import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { multusValues, values } from "../constructs";
import { descriptionOf, isValue, type ValueMembers } from "../helm/value";
import { root } from "./paths";

const run = promisify(execFile);
const folder = join(root, "dist", "lib");

/** The comments of groups and values by path: their descriptions and defaults. */
function commentsOf(members: ValueMembers, path: readonly string[] = []): readonly (readonly [string, string])[] {
  return Object.entries(members).flatMap(([name, member]) => {
    const at = [...path, name];
    if (!isValue(member)) return [[at.join("."), `${descriptionOf(member)}.`] as const, ...commentsOf(member, at)];
    const { description, default: usual } = member.about;
    const shown = usual === undefined ? "none" : JSON.stringify(usual);
    return [[at.join("."), `${description}. @default ${shown}`] as const];
  });
}

/** The declarations of values, each below its comment: editors show them for props. */
function documented(declarations: string, members: ValueMembers): string {
  const comments = new Map(commentsOf(members));
  const path: string[] = [];
  const lines = declarations.split("\n").flatMap((line) => {
    const [, indent = "", name] = /^((?: {4})+)"?([\w-]+)"?: /.exec(line) ?? [];
    if (name === undefined) return [line];
    path.splice(indent.length / 4 - 1, Number.POSITIVE_INFINITY, name);
    const comment = comments.get(path.join("."));
    return comment === undefined ? [line] : [`${indent}/** ${comment} */`, line];
  });
  return lines.join("\n");
}

/** Compiles what the npm package has: the constructs, with their declarations. */
export async function buildLib(): Promise<void> {
  const manifest = createRequire(__filename).resolve("typescript/package.json");
  await rm(folder, { recursive: true, force: true });
  await run(process.execPath, [join(dirname(manifest), "bin", "tsc"), "--project", "tsconfig.lib.json"], { cwd: root });
  const files = [
    ["values.d.ts", values],
    [join("multus", "values.d.ts"), multusValues],
  ] as const;
  for (const [name, members] of files) {
    const path = join(folder, "constructs", name);
    await writeFile(path, documented(await readFile(path, "utf8"), members));
  }
}
