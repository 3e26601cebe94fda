import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { bundle } from "./bundle";
import { outputs, root } from "./paths";

/** Bundles the command line into one executable script. */
export async function buildCli(path: string = outputs.cli): Promise<void> {
  // Class names stay: cdk8s looks at them.
  const small = { minifyWhitespace: true, banner: { js: "#!/usr/bin/env node" } };
  await bundle(join(root, "cli", "main.ts"), path, small);
  await chmod(path, 0o755);
}
