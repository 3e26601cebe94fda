import { execFile } from "node:child_process";
import { realpath } from "node:fs/promises";
import { promisify } from "node:util";
import { outputs } from "../paths";

const run = promisify(execFile);

/** One regular file of the image. */
export interface ImageFile {
  /** Absolute path in the image. */
  readonly path: string;
  /** Path of the file on this machine. */
  readonly source: string;
  readonly mode: number;
}

/**
 * The shared libraries that an executable is linked with, its loader among them: pairs of the path that the executable
 * asks for and the file that stands there on this machine.
 */
export async function sharedLibraries(executable: string): Promise<ImageFile[]> {
  const { stdout } = await run("ldd", [executable]);
  const paths = [...stdout.matchAll(/^\s*(?:\S+ => )?(\/\S+) \(0x[0-9a-f]+\)$/gm)].map((match) => match[1] ?? "");
  if (paths.length === 0) throw new Error(`ldd names no library of ${executable}: it said ${JSON.stringify(stdout)}`);
  return Promise.all(paths.map(async (path) => ({ path, source: await realpath(path), mode: 0o755 })));
}

/** Everything the image holds: the runtime with the plugin inside, the scripts it runs, and what it is linked with. */
export async function imageFiles(): Promise<ImageFile[]> {
  return [
    { path: "/opt/cni/bin/linkerd-cni", source: outputs.plugin, mode: 0o755 },
    { path: "/opt/linkerd-cni/installer.js", source: outputs.installer, mode: 0o644 },
    ...(await sharedLibraries(outputs.plugin)),
  ];
}
