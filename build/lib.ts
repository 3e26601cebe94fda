import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { root } from "./paths";

const run = promisify(execFile);

/** Compiles what the npm package has: the constructs, with their declarations. */
export async function buildLib(): Promise<void> {
  const manifest = createRequire(__filename).resolve("typescript/package.json");
  await rm(join(root, "dist", "lib"), { recursive: true, force: true });
  await run(process.execPath, [join(dirname(manifest), "bin", "tsc"), "--project", "tsconfig.lib.json"], { cwd: root });
}
