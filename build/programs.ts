import { join } from "node:path";
import { AS_IS, bundle } from "./bundle";
import { buildExecutable, scriptsIn } from "./engine";
import { cache, outputs, root } from "./paths";
import { type Architecture, hostArchitecture } from "./runtime";

/** Where the plugins begin, and the scripts that they load where they need them. */
export const PLUGIN_ENTRY = join(root, "plugin", "main.ts");
export const PLUGIN_SCRIPTS = join(root, "host", "scripts");
export const NRI_ENTRY = join(root, "nri", "main.ts");
const INSTALLER_ENTRY = join(root, "installer", "main.ts");
const CONTROLLERS_ENTRY = join(root, "controllers", "main.ts");
/** The other programs of the plugin's executable, by the argument that chooses them. */
const PROGRAMS = {
  install: INSTALLER_ENTRY,
  repair: join(root, "controllers", "repair", "main.ts"),
  multus: join(root, "controllers", "multus", "main.ts"),
  validate: join(root, "controllers", "validate.main.ts"),
  nri: NRI_ENTRY,
};

/** The sources that the image's programs begin with: what their bundles hold is part of the image. */
export async function entries(): Promise<readonly string[]> {
  return [PLUGIN_ENTRY, ...(await scriptsIn(PLUGIN_SCRIPTS)), NRI_ENTRY, INSTALLER_ENTRY, CONTROLLERS_ENTRY];
}

/** Paths of the image's programs. */
export type Programs = Readonly<Record<"plugin" | "nri" | "installer" | "controllers", string>>;

const PLUGIN = { main: PLUGIN_ENTRY, programs: PROGRAMS, scripts: PLUGIN_SCRIPTS };

/** Builds the plugin's executable, which has the other programs, too. @default architecture this machine's */
export function buildPlugin(path: string = outputs.plugin, architecture: Architecture = hostArchitecture()) {
  return buildExecutable(path, { ...PLUGIN, architecture });
}

/** Builds the NRI plugin's executable. @default architecture this machine's */
export function buildNri(path: string = outputs.nri, architecture: Architecture = hostArchitecture()) {
  return buildExecutable(path, { main: NRI_ENTRY, scripts: PLUGIN_SCRIPTS, architecture });
}

/** Builds the plugin for tests that look for errors of its C part: it ends with a report where one is made. */
export async function buildSanitizedPlugin(path: string = join(cache, "sanitized", "linkerd-cni")): Promise<string> {
  await buildExecutable(path, { ...PLUGIN, sanitized: true });
  return path;
}

/** Bundles the installer for the image's runtime. */
export function buildInstaller(path: string = outputs.installer) {
  return bundle(INSTALLER_ENTRY, path, AS_IS);
}

/** Bundles the controllers for the image's runtime. */
export function buildControllers(path: string = outputs.controllers) {
  return bundle(CONTROLLERS_ENTRY, path, AS_IS);
}
