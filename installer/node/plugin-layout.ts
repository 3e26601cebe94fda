import * as fs from "node:fs";
import { arch } from "node:os";
import { join } from "node:path";
import { launcher } from "../../cni/launcher";
import { PLUGIN_TYPE } from "../../cni/stanza";
import type { Settings } from "../settings";

/** One file of the plugin: in this image, and on the node as seen from here. */
export interface Part {
  readonly from: string;
  readonly path: string;
}

/** What stands for the plugin on the node. */
export interface PluginLayout {
  readonly parts: readonly Part[];
  /** Directories that hold the parts and nothing else, outermost first. */
  readonly directories: readonly string[];
  /** Content of the file that runtimes call; absent where that is the only part. */
  readonly launcher?: Uint8Array;
  /** The plugin as it can be started from here, where the node's own paths lead nowhere. */
  readonly command: readonly [string, ...string[]];
}

/** Folder beside the launcher. */
export const PLUGIN_HOME = `${PLUGIN_TYPE}.d`;

/**
 * A name for these files, by their sizes. Versions of different sizes have folders of their own: while one takes the
 * other's place, a plugin that is just being started finds all of its own files. Whether a file on the node is the
 * image's own is decided byte for byte, elsewhere.
 */
function generation(files: readonly string[]): string {
  return files.map((file) => fs.statSync(file).size.toString(36)).join("-");
}

function bare(source: string, path: string): PluginLayout {
  return { parts: [{ from: source, path }], directories: [], command: [path] };
}

/**
 * How the plugin is laid out: a launcher and a folder with the plugin and its C library, so that the node needs none;
 * where this image carries no C library, the executable alone.
 * @throws where the image has a C library without a loader
 */
export function pluginLayout({
  binDir,
  pluginDir,
  libraryDir,
}: Pick<Settings, "binDir" | "pluginDir" | "libraryDir">): PluginLayout {
  const source = join(pluginDir, PLUGIN_TYPE);
  const path = join(binDir.here, PLUGIN_TYPE);
  const architecture = arch();
  if (!fs.existsSync(libraryDir) || (architecture !== "x64" && architecture !== "arm64")) return bare(source, path);
  const libraries = fs.readdirSync(libraryDir).sort();
  const loader = libraries.find((name) => name.startsWith("ld-linux"));
  if (loader === undefined) throw new Error(`${libraryDir} holds no ld-linux*: the image is incomplete`);
  const files = [source, ...libraries.map((name) => join(libraryDir, name))];
  const folder = join(PLUGIN_HOME, generation(files));
  const at = (directory: string, name: string) => join(directory, folder, name);
  const names = [PLUGIN_TYPE, ...libraries];
  const here = join(binDir.here, folder);
  return {
    parts: files.map((from, index) => ({ from, path: at(binDir.here, names[index] ?? "") })),
    directories: [join(binDir.here, PLUGIN_HOME), here],
    launcher: launcher({
      architecture,
      loader: at(binDir.onNode, loader),
      libraries: join(binDir.onNode, folder),
      executable: at(binDir.onNode, PLUGIN_TYPE),
    }),
    command: [at(binDir.here, loader), "--library-path", here, at(binDir.here, PLUGIN_TYPE)],
  };
}
