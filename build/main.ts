import { synthesize } from "../charts/synth";
import { buildCli } from "./cli";
import { buildImage } from "./image/image";
import { recordImageSize } from "./image/size";
import { buildLib } from "./lib";
import { root } from "./paths";
import { buildPlugin, buildSanitizedPlugin } from "./programs";

/** Steps in order, each with an optional description of its output. `npm run build -- plugin image` builds parts. */
type Steps = Readonly<Record<string, () => Promise<unknown>>>;

/** The image and its inputs. */
const image: Steps = {
  plugin: () => buildPlugin(),
  image: () => buildImage(),
};

/** The other parts, which are independent and so built concurrently. */
const rest: Steps = {
  charts: () => synthesize(root),
  lib: buildLib,
  cli: () => buildCli(),
};

/** Parts that are built only if named. */
const extras: Steps = {
  "plugin-sanitized": () => buildSanitizedPlugin(),
  "image-size": () => recordImageSize(),
};

async function build(steps: Steps): Promise<void> {
  for (const [name, step] of Object.entries(steps)) {
    const start = performance.now();
    const made = await step();
    const took = (performance.now() - start).toFixed(0).padStart(6);
    process.stdout.write(`${name.padEnd(12)} ${took} ms  ${typeof made === "string" ? made : ""}\n`);
  }
}

async function main(names: readonly string[]): Promise<void> {
  const known = { ...image, ...rest, ...extras };
  const unknown = names.filter((name) => !(name in known));
  if (unknown.length > 0) throw new Error(`cannot build ${unknown.join(", ")}: known are ${Object.keys(known)}`);
  if (names.length === 0) {
    await Promise.all([build(image), build(rest)]);
    return;
  }
  const chosen = (steps: Steps) => Object.fromEntries(Object.entries(steps).filter(([name]) => names.includes(name)));
  await Promise.all([build(chosen({ ...image, ...extras })), build(chosen(rest))]);
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`build: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
