/**
 * `npm run bench`: builds the plugin, then measures by the runtime, which starts a process in half of Node's time.
 * `npm run bench -- --quick` calls everything a few times, to try it, and records nothing.
 */
import { spawnSync } from "node:child_process";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { outputs } from "../../build/paths";
import { buildNri, buildPlugin } from "../../build/programs";
import { hostRuntime } from "../../build/runtime";
import { namespacesMissing } from "../support/netns";

/** Has a new file written to the disk, so that this does not go on while it is measured. */
async function settle(path: string): Promise<void> {
  const file = await open(path);
  await file.sync();
  await file.close();
}

async function main(): Promise<void> {
  const missing = namespacesMissing();
  if (missing !== undefined) throw new Error(`the benchmark needs ${missing}`);
  process.stderr.write("building the plugins\n");
  await buildPlugin();
  await buildNri();
  await settle(outputs.plugin);
  await settle(outputs.nri);
  const { status } = spawnSync(hostRuntime(), [join(__dirname, "bench.ts"), ...process.argv.slice(2)], {
    stdio: "inherit",
  });
  process.exitCode = status ?? 1;
}

main().catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
