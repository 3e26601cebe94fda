import { spawnSync } from "node:child_process";
import { join } from "node:path";

const root = join(__dirname, "..", "..");
const tsc = join(root, "node_modules", "typescript", "bin", "tsc");

test("programs of the engine use no module and no global of Node, but node:fs", () => {
  const args = [tsc, "--noEmit", "--pretty", "false", "-p", "tsconfig.engine.json"];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "", stderr: "" });
});
