import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { bundle } from "./bundle";
import { root } from "./paths";
import { type Architecture, hostArchitecture, hostRuntime, runtimePath } from "./runtime";
import { seal } from "./seal";

const run = promisify(execFile);

/**
 * Nothing that lies in the caller's working directory may change what the executable does: by default a compiled
 * executable reads bunfig.toml (and runs a `preload` named there) and .env.
 */
const SEALED = [
  "--no-compile-autoload-bunfig",
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-tsconfig",
  "--no-compile-autoload-package-json",
];

/** Where the plugin's executable is compiled from. */
export const PLUGIN_ENTRY = join(root, "plugin", "main.ts");

/** A call is over before compiling its code to machine code pays: that alone took a sixth of an ADD. */
const INTERPRET = "--compile-jit-policy=1000";

/** Compiles one TypeScript entry into one executable file, with bytecode inside. @default architecture this machine's */
export async function compileExecutable(
  entry: string,
  outfile: string,
  architecture: Architecture = hostArchitecture(),
): Promise<void> {
  const target = [`--target=bun-linux-${architecture}`, `--compile-executable-path=${await runtimePath(architecture)}`];
  await mkdir(dirname(outfile), { recursive: true });
  const work = await mkdtemp(join(dirname(outfile), ".build-"));
  try {
    const script = join(work, "bundle.js");
    const made = join(work, "executable");
    await bundle(entry, script, { minify: true });
    const options = ["--compile", "--bytecode", "--format=cjs", "--minify", INTERPRET, ...SEALED, ...target];
    await run(hostRuntime(), ["build", script, ...options, `--outfile=${made}`], { cwd: work });
    await seal(made);
    await rename(made, outfile);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
