/** What each folder may import of the others. What is not in the table, such as build and test, may import everything. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { root } from "../../build/paths";

const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  cni: [],
  host: ["cni"],
  system: ["cni", "host"],
  process: ["cni", "host", "system"],
  kubernetes: ["cni", "host", "system", "process"],
  netlink: ["cni", "host"],
  plugin: ["cni", "host", "system", "kubernetes", "netlink"],
  nri: ["cni", "host", "system", "process", "kubernetes", "netlink"],
  installer: ["cni", "host", "system", "process", "kubernetes"],
  controllers: ["cni", "host", "system", "process", "kubernetes"],
  helm: [],
  constructs: ["cni", "helm"],
  charts: ["cni", "helm", "constructs"],
  cli: ["cni", "system", "process", "kubernetes", "helm", "constructs"],
};

const folderOf = (path: string): string => path.split("/")[0] ?? "";

/** The folders of a file's imports that the table does not allow. */
function forbidden(path: string, source: string): readonly string[] {
  const [folder, allowed] = [folderOf(path), MAY_IMPORT[folderOf(path)]];
  const imports = [...source.matchAll(/(?:\bfrom|\bimport|\brequire\w*\() *\(?"(\.[^"]*)"/g)].map(([, name = ""]) =>
    relative(root, join(root, dirname(path), name)),
  );
  const wrong = (name: string) =>
    // The folder's package.json names the files that are published, which are not those of this checkout.
    name === "helm" || (folderOf(name) !== folder && allowed?.includes(folderOf(name)) === false);
  return imports.filter(wrong).map((name) => `${path} imports ${name}`);
}

test.each([
  ["cni/chain/a.ts", 'import { port } from "../../host/port";', ["cni/chain/a.ts imports host/port"]],
  ["cli/a.ts", 'const { run } = await import("../charts/synth");', ["cli/a.ts imports charts/synth"]],
  ["charts/a.ts", 'export type { Chart } from "../helm";', ["charts/a.ts imports helm"]],
  ["installer/a.ts", 'import { a } from "../constructs/a";', ["installer/a.ts imports constructs/a"]],
  ["cni/a.ts", 'import { b } from "./b";', []],
])("%s: %s", (path, source, expected) => {
  expect(forbidden(path, source)).toEqual(expected);
});

test("each folder imports only what the table allows", () => {
  const files = execFileSync("git", ["ls-files", "*.ts"], { cwd: root, encoding: "utf8" }).trim().split("\n");
  // The fake port answers for netlink.
  const found = files.filter((path) => existsSync(join(root, path)) && path !== "host/fake.testing.ts");
  expect(found.flatMap((path) => forbidden(path, readFileSync(join(root, path), "utf8")))).toEqual([]);
  expect(Object.keys(MAY_IMPORT).filter((folder) => !found.some((path) => folderOf(path) === folder))).toEqual([]);
});
