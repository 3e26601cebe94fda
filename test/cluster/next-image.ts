import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildExecutable } from "../../build/engine";
import { IMAGE_NAME, imageSpec, platformFiles } from "../../build/image/image";
import { ociArchive } from "../../build/image/oci";
import { outputs } from "../../build/paths";
import { PLUGIN_ENTRY, PLUGIN_SCRIPTS } from "../../build/programs";
import { hostArchitecture } from "../../build/runtime";
import { importImage } from "./images";
import type { Machine } from "./machine";
import { paths } from "./paths";

/**
 * Gives the node's container runtime an image as a next version would be: its plugin is another executable.
 * @returns what will stand on the node for that executable
 */
export async function importNextImage(machine: Machine, tag: string): Promise<string> {
  const [entry, executable, archive] = ["next.ts", "next", "next.tar"].map((name) => join(paths.images, name)) as [
    string,
    string,
    string,
  ];
  await mkdir(paths.images, { recursive: true });
  await writeFile(entry, `globalThis["${tag}"] = true;\nimport ${JSON.stringify(PLUGIN_ENTRY)};\n`);
  await buildExecutable(executable, { main: entry, scripts: PLUGIN_SCRIPTS });
  const spec = { ...(await imageSpec()), reference: `${IMAGE_NAME}:${tag}` };
  await writeFile(
    archive,
    await ociArchive(spec, [await platformFiles(hostArchitecture(), { ...outputs, plugin: executable })]),
  );
  await importImage(machine, archive);
  const digest = createHash("sha256").update(await readFile(executable));
  return `file 755 ${digest.digest("hex")}`;
}
