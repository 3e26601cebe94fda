import { type BuildOptions, build } from "esbuild";

/** Bundles one entry into a single CommonJS file; `bun:*` modules stay imports of the runtime. */
export async function bundle(entry: string, outfile: string, options: BuildOptions = {}): Promise<void> {
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "es2022",
    external: ["bun:ffi"],
    minifySyntax: true,
    legalComments: "none",
    logLevel: "warning",
    ...options,
  });
}
