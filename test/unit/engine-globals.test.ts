/** Code that runs on the engine does not need another runtime: it is type-checked with only the engine's globals. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const root = join(__dirname, "..", "..");
const tsc = join(root, "node_modules", "typescript", "bin", "tsc");

/** In executables a twin by the C host takes its place. */
const hasTwin = (path: string) => existsSync(join(root, path.replace(/\.ts$/, ".engine.ts")));

test("programs use modules and globals of Node only in files with a twin", () => {
  const args = [tsc, "--noEmit", "--pretty", "false", "-p", "tsconfig.engine.json"];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  const errors = stdout.split("\n").filter((line) => /^\S+\(\d+,\d+\): error/.test(line));
  const ours = errors.filter((line) => !hasTwin(line.slice(0, line.indexOf("("))));
  expect([ours, stderr]).toEqual([[], ""]);
  // That it looks: Node's side of a twin needs Node.
  expect(errors.join("\n")).toContain("system/child.ts");
});
