/** What each folder may import of the others. What is not in the table, such as build and test, may import everything. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { root } from "../../build/paths";

/** A feature's part on a node is `features/installer`; its other parts are `features`. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  cni: [],
  host: ["cni"],
  system: ["cni", "host"],
  process: ["cni", "host", "system"],
  kubernetes: ["cni", "host", "system", "process"],
  netlink: ["cni", "host"],
  plugin: ["cni", "host", "system", "kubernetes", "netlink"],
  nri: ["cni", "host", "system", "process", "kubernetes", "netlink"],
  installer: ["cni", "host", "system", "process", "kubernetes", "features/installer"],
  controllers: ["cni", "host", "system", "process", "kubernetes"],
  "features/installer": ["cni", "system", "process", "kubernetes"],
  features: ["cni", "system", "process", "kubernetes", "helm", "constructs", "cli"],
  helm: [],
  constructs: ["cni", "helm", "features"],
  charts: ["helm", "constructs", "features"],
  cli: ["cni", "system", "process", "kubernetes", "helm", "constructs", "features"],
};

function folderOf(path: string): string {
  const [folder = ""] = path.split("/");
  return /^features\/\w+\/installer\b/.test(path) ? "features/installer" : folder;
}

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
  ["features/taint/chart.ts", 'import "./installer";', ["features/taint/chart.ts imports features/taint/installer"]],
  ["installer/a.ts", 'import { taint } from "../features/taint/installer";', []],
  ["cni/a.ts", 'import { b } from "./b";', []],
])("%s: %s", (path, source, expected) => {
  expect(forbidden(path, source)).toEqual(expected);
});

test("each folder imports only what the table allows", () => {
  const files = execFileSync("git", ["ls-files", "*.ts"], { cwd: root, encoding: "utf8" }).trim().split("\n");
  // Tests of a feature use all of its parts; the fake port answers for netlink.
  const excepted = /^features\/.*\.test\.ts$|^host\/fake\.testing\.ts$/;
  const found = files.filter((path) => existsSync(join(root, path)) && !excepted.test(path));
  expect(found.flatMap((path) => forbidden(path, readFileSync(join(root, path), "utf8")))).toEqual([]);
  expect(Object.keys(MAY_IMPORT).filter((folder) => !found.some((path) => folderOf(path) === folder))).toEqual([]);
});
