import { join } from "node:path";
import { synthesize } from "../charts/synth";
import { bundle } from "./bundle";
import { compileExecutable } from "./executable";
import { buildImage } from "./image/image";
import { outputs, root } from "./paths";

/** What can be built, in order. `npm run build -- plugin cli` builds a part. */
const steps: Readonly<Record<string, () => Promise<void>>> = {
  plugin: () => compileExecutable(join(root, "plugin", "main.ts"), outputs.plugin),
  installer: () => bundle(join(root, "installer", "main.ts"), outputs.installer),
  charts: () => synthesize(join(root, "dist")),
  image: buildImage,
};

async function main(names: readonly string[]): Promise<void> {
  const unknown = names.filter((name) => !(name in steps));
  if (unknown.length > 0) throw new Error(`cannot build ${unknown.join(", ")}: known are ${Object.keys(steps)}`);
  for (const [name, step] of Object.entries(steps)) {
    if (names.length > 0 && !names.includes(name)) continue;
    const start = performance.now();
    await step();
    process.stdout.write(`${name.padEnd(12)} ${(performance.now() - start).toFixed(0).padStart(6)} ms\n`);
  }
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`build: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
