import { rename } from "node:fs/promises";
import { type BuildOptions, build } from "esbuild";
import { root } from "./paths";

/** Options of every bundle: a single CommonJS file for Node. */
const COMMON = {
  // Comments in bundles name sources relative to this directory.
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "es2022",
  minifySyntax: true,
  legalComments: "none",
  logLevel: "warning",
} as const satisfies BuildOptions;

/** Bundles one entry into one file, which is replaced atomically. */
export async function bundle(entry: string, outfile: string, options: BuildOptions = {}): Promise<void> {
  const part = `${outfile}.${process.pid}.part`;
  await build({ ...COMMON, entryPoints: [entry], outfile: part, ...options });
  await rename(part, outfile);
}

/** Folders of the npm packages in the bundles of these entries, relative to the root and sorted. */
export async function bundledPackages(entries: readonly string[], options: BuildOptions = {}): Promise<string[]> {
  const { metafile } = await build({
    ...COMMON,
    ...options,
    entryPoints: [...entries],
    outdir: "unused",
    write: false,
    metafile: true,
  });
  const folders = Object.keys(metafile.inputs).map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]);
  return [...new Set(folders.filter((folder) => folder !== undefined))].sort();
}
