import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { version } from "../constructs/version";
import { bundle } from "./bundle";
import { npmComponents } from "./image/components";
import { licences } from "./image/notice";
import { billOfMaterials } from "./image/sbom";
import { outputs, root } from "./paths";

/** Path of the bill of materials of a command line. */
export const billOfMaterialsOf = (path: string): string => `${path}.cdx.json`;

/** Formats text as a comment of a script. */
const comment = (text: string): string => text.replace(/^/gm, "// ").replace(/ +$/gm, "");

/**
 * Bundles the command line into one executable script. It ends with the licences of its packages, since it is
 * distributed as one file; its bill of materials is beside it.
 */
export async function buildCli(path: string = outputs.cli): Promise<void> {
  const entry = join(root, "cli", "main.ts");
  const components = await npmComponents([entry]);
  const heading = "l5d-cni is licensed under Apache-2.0. It contains these packages, under licences of their own:\n";
  const notices = [heading, ...licences(components)].join("\n");
  // Keep class names, which cdk8s reads.
  const small = { minifyWhitespace: true, banner: { js: "#!/usr/bin/env node" }, footer: { js: comment(notices) } };
  await bundle(entry, path, small);
  await chmod(path, 0o755);
  const product = { type: "application", name: "l5d-cni", version, license: "Apache-2.0" } as const;
  await writeFile(billOfMaterialsOf(path), billOfMaterials(components, product));
}
