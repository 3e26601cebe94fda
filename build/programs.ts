import { join } from "node:path";
import { type Architecture, hostArchitecture } from "./architecture";
import { buildExecutable, type ExecutableOptions, scriptsIn } from "./engine";
import { cache, outputs, root } from "./paths";

const PLUGIN_ENTRY = join(root, "plugin", "main.ts");
const SCRIPTS = join(root, "host", "scripts");

/** The executable: the CNI plugin, and the programs chosen by its first argument. */
export const PRODUCT = {
  main: PLUGIN_ENTRY,
  programs: {
    install: join(root, "installer", "main.ts"),
    repair: join(root, "controllers", "repair", "main.ts"),
    nri: join(root, "nri", "main.ts"),
    multus: join(root, "controllers", "multus", "main.ts"),
    validate: join(root, "controllers", "validate.main.ts"),
  },
  scripts: SCRIPTS,
} as const satisfies ExecutableOptions;

/** The entries of the executable's scripts. */
export async function entries(): Promise<readonly string[]> {
  return [PRODUCT.main, ...Object.values(PRODUCT.programs), ...(await scriptsIn(PRODUCT.scripts))];
}

/** Builds the executable. @default architecture this machine's */
export function buildPlugin(path: string = outputs.plugin, architecture: Architecture = hostArchitecture()) {
  return buildExecutable(path, { ...PRODUCT, architecture });
}

/** Builds it with sanitizers for tests of its C part: it ends with a report after an error. */
export async function buildSanitizedPlugin(path: string = join(cache, "sanitized", "linkerd-cni")): Promise<string> {
  await buildExecutable(path, { ...PRODUCT, sanitized: true });
  return path;
}
