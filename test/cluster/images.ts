import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ociArchive } from "../../build/image/oci";
import { programs } from "./binaries";
import type { Machine } from "./machine";
import { paths } from "./paths";
import { PAUSE, runtime } from "./runtimes";

/** The image of all the test's containers: `pause`, `proxy`, `serve PORT`, `dial ADDRESS`. */
export const PROGRAMS_IMAGE = "linkerd-cni.test/programs:1";

const ENTRYPOINTS: Readonly<Record<string, readonly string[]>> = {
  [PROGRAMS_IMAGE]: ["/programs"],
  // The same, with an entrypoint that pauses.
  [PAUSE]: ["/programs", "pause"],
};

/** Makes one of the test's images, as an OCI archive. */
export async function testImage(reference: string): Promise<Uint8Array> {
  const architecture = process.arch === "arm64" ? "arm64" : "amd64";
  const files = [{ name: "programs", mode: 0o755, content: await readFile(programs) }];
  const entrypoint = ENTRYPOINTS[reference] ?? [];
  return ociArchive({ reference, entrypoint, env: [], labels: {} }, [{ architecture, files }]);
}

/** Makes the test's images and gives them to the node's container runtime. */
export async function importTestImages(machine: Machine): Promise<void> {
  await mkdir(paths.images, { recursive: true });
  for (const reference of Object.keys(ENTRYPOINTS)) {
    const path = join(paths.images, `${reference.replace(/[^a-z0-9]/g, "-")}.tar`);
    await writeFile(path, await testImage(reference));
    await importImage(machine, path);
  }
}

/** Imports an OCI archive into the node's container runtime, because there is no registry. */
export async function importImage(machine: Machine, archive: string): Promise<void> {
  await runtime().importImage(machine, archive);
}
