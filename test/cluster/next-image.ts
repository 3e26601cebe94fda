import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hostArchitecture } from "../../build/architecture";
import { buildExecutable } from "../../build/engine";
import { IMAGE_NAME, imageSpec, platformFiles } from "../../build/image/image";
import { ociArchive } from "../../build/image/oci";
import { PRODUCT } from "../../build/programs";
import { importImage } from "./images";
import type { Machine } from "./machine";
import { paths } from "./paths";

/**
 * Gives the node's container runtime an image as a next version would be: its plugin is another executable.
 * @returns the entry for that executable in the node's list
 */
export async function importNextImage(machine: Machine, tag: string): Promise<string> {
  const [entry, executable, archive] = ["next.ts", "next", "next.tar"].map((name) => join(paths.images, name)) as [
    string,
    string,
    string,
  ];
  await mkdir(paths.images, { recursive: true });
  await writeFile(entry, `globalThis["${tag}"] = true;\nimport ${JSON.stringify(PRODUCT.main)};\n`);
  await buildExecutable(executable, { ...PRODUCT, main: entry });
  const spec = { ...(await imageSpec()), reference: `${IMAGE_NAME}:${tag}` };
  await writeFile(archive, await ociArchive(spec, [await platformFiles(hostArchitecture(), executable)]));
  await importImage(machine, archive);
  const digest = createHash("sha256").update(await readFile(executable));
  return `file 755 ${digest.digest("hex")}`;
}
