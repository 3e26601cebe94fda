/** Events that the installer counts as the container runtime reading a folder of drop-ins. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildExecutable } from "../../build/engine";
import { root } from "../../build/paths";
import { PRODUCT } from "../../build/programs";

let directory: string;
let executable: string;
const folder = (...names: readonly string[]) => join(directory, "k", ...names);
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "opened-"));
  mkdirSync(folder("inner"), { recursive: true });
  writeFileSync(folder("10-a.conf"), "{}");
  executable = join(directory, "opened");
  await buildExecutable(executable, { ...PRODUCT, programs: { opened: join(root, "test/kernel/opened.main.ts") } });
});
afterAll(() => rmSync(directory, { recursive: true }));

test.each([
  ["is listed itself", folder, "opened", 60_000],
  ["has a file that is read", () => folder("10-a.conf"), "not opened", 100],
  ["has a folder that is listed", () => folder("inner"), "not opened", 100],
] as const)("a folder that %s", (_, path, is, withinMs) => {
  expect(execFileSync(executable, ["opened", folder(), path(), String(withinMs)], { encoding: "utf8" })).toBe(is);
});
