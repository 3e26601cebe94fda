import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { CONTROLLERS, INSTALLER, RUNTIME } from "../../constructs/container";
import { root } from "../paths";
import { entries, type Programs } from "../programs";
import { type Architecture, runtimePath } from "../runtime";
import { componentsOf } from "./components";
import { glibcFiles } from "./glibc";
import { notice } from "./notice";
import { billOfMaterials } from "./sbom";
import type { TarEntry } from "./tar";

/** Everything in the image of an architecture. @throws where this machine lacks the architecture's C library */
export async function imageFiles(architecture: Architecture, programs: Programs): Promise<readonly TarEntry[]> {
  const glibc = await glibcFiles(architecture);
  const components = await componentsOf(architecture, await entries(), glibc);
  const at = (path: string, mode: number, content: Buffer): TarEntry => ({ name: path.slice(1), mode, content });
  return [
    at("/opt/cni/bin/linkerd-cni", 0o755, await readFile(programs.plugin)),
    at("/opt/cni/bin/linkerd-cni-nri", 0o755, await readFile(programs.nri)),
    at(RUNTIME, 0o755, await readFile(await runtimePath(architecture))),
    at(INSTALLER, 0o644, await readFile(programs.installer)),
    at(CONTROLLERS, 0o644, await readFile(programs.controllers)),
    at("/opt/linkerd-cni/sbom.cdx.json", 0o644, Buffer.from(await billOfMaterials(components))),
    at("/licenses/LICENSE", 0o644, await readFile(join(root, "LICENSE"))),
    at("/licenses/NOTICE", 0o644, Buffer.from(await notice(components))),
    ...glibc,
  ];
}
