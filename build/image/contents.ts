import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { EXECUTABLE } from "../../constructs/container";
import { version } from "../../constructs/version";
import { root } from "../paths";
import { componentsOf } from "./components";
import { notice } from "./notice";
import { billOfMaterials } from "./sbom";
import type { TarEntry } from "./tar";

/** Path of the bill of materials in the image. */
export const BILL_OF_MATERIALS = "/licenses/sbom.cdx.json";

/** Everything in the image. @param executable of the image's architecture */
export async function imageFiles(executable: string): Promise<readonly TarEntry[]> {
  const components = await componentsOf();
  const product = { type: "container", name: "linkerd-cni", version, license: "Apache-2.0" } as const;
  const at = (path: string, mode: number, content: Buffer): TarEntry => ({ name: path.slice(1), mode, content });
  return [
    at(EXECUTABLE, 0o755, await readFile(executable)),
    at(BILL_OF_MATERIALS, 0o644, Buffer.from(billOfMaterials(components, product))),
    at("/licenses/LICENSE", 0o644, await readFile(join(root, "LICENSE"))),
    at("/licenses/NOTICE", 0o644, Buffer.from(await notice(components))),
  ];
}
