import { join } from "node:path";
import { AS_IS, bundle } from "./bundle";
import { compileExecutable, PLUGIN_ENTRY } from "./executable";
import { outputs, root } from "./paths";
import { type Architecture, hostArchitecture } from "./runtime";

const INSTALLER_ENTRY = join(root, "installer", "main.ts");
const CONTROLLERS_ENTRY = join(root, "controllers", "main.ts");

/** The sources that the image's programs begin with: what their bundles hold is part of the image. */
export const ENTRIES = [PLUGIN_ENTRY, INSTALLER_ENTRY, CONTROLLERS_ENTRY];

/** Paths of the image's programs. */
export type Programs = Readonly<Record<"plugin" | "installer" | "controllers", string>>;

/** Compiles the plugin. @default architecture this machine's */
export function buildPlugin(path: string = outputs.plugin, architecture: Architecture = hostArchitecture()) {
  return compileExecutable(PLUGIN_ENTRY, path, architecture);
}

/** Bundles the installer for the image's runtime. */
export function buildInstaller(path: string = outputs.installer) {
  return bundle(INSTALLER_ENTRY, path, AS_IS);
}

/** Bundles the controllers for the image's runtime. */
export function buildControllers(path: string = outputs.controllers) {
  return bundle(CONTROLLERS_ENTRY, path, AS_IS);
}
