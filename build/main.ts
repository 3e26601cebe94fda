import { synthesize } from "../charts/synth";
import { updateBenchmarks } from "./benchmarks";
import { buildCli } from "./cli";
import { buildImage, layOutImage } from "./image/image";
import { loadImage } from "./image/load";
import { recordImageSize } from "./image/size";
import { buildLib } from "./lib";
import { outputs, root } from "./paths";
import { buildControllers, buildInstaller, buildNri, buildPlugin, buildSanitizedPlugin } from "./programs";

/** What can be built, in order; a step may say what it made. `npm run build -- plugin image` builds a part. */
const steps: Readonly<Record<string, () => Promise<unknown>>> = {
  plugin: () => buildPlugin(),
  nri: () => buildNri(),
  installer: () => buildInstaller(),
  controllers: () => buildControllers(),
  charts: () => synthesize(root),
  benchmarks: updateBenchmarks,
  lib: buildLib,
  cli: () => buildCli(),
  image: () => buildImage(),
};

/** The same where nothing is named: as much as this machine can, so that nobody needs what is for others. */
const everything: typeof steps = { ...steps, image: () => buildImage({ partial: true }) };

/** What is made only when it is named. */
const extras: typeof steps = {
  "plugin-sanitized": () => buildSanitizedPlugin(),
  rootfs: layOutImage,
  "image-size": () => recordImageSize(),
  "load-image": () => loadImage(outputs.image, process.env),
};

async function main(names: readonly string[]): Promise<void> {
  const known = { ...steps, ...extras };
  const unknown = names.filter((name) => !(name in known));
  if (unknown.length > 0) throw new Error(`cannot build ${unknown.join(", ")}: known are ${Object.keys(known)}`);
  const chosen = names.length === 0 ? everything : known;
  for (const [name, step] of Object.entries(chosen)) {
    if (names.length > 0 && !names.includes(name)) continue;
    const start = performance.now();
    const made = await step();
    const took = (performance.now() - start).toFixed(0).padStart(6);
    process.stdout.write(`${name.padEnd(12)} ${took} ms  ${typeof made === "string" ? made : ""}\n`);
  }
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`build: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
