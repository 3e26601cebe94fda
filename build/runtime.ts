import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { cache, root } from "./paths";

const run = promisify(execFile);

const packages = {
  x64: "@oven/bun-linux-x64-baseline",
  arm64: "@oven/bun-linux-aarch64",
} as const;

/** A processor that the product is built for, as Node names it. */
export type Architecture = keyof typeof packages;
export const ARCHITECTURES = Object.keys(packages) as Architecture[];

/** This machine's architecture. @throws where the product is not built for it */
export function hostArchitecture(): Architecture {
  const found = ARCHITECTURES.find((architecture) => architecture === process.arch);
  if (found === undefined) throw new Error(`cannot build on ${process.arch}: known are ${ARCHITECTURES.join(", ")}`);
  return found;
}

function installed(name: string): string | undefined {
  try {
    return join(dirname(createRequire(__filename).resolve(`${name}/package.json`)), "bin", "bun");
  } catch {
    return undefined;
  }
}

interface Locked {
  readonly version: string;
  /** Subresource integrity: `sha512-` and the digest in base64. */
  readonly integrity: string;
}

async function locked(name: string): Promise<Locked> {
  const lock = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8"));
  const found = lock.packages[`node_modules/${name}`] as Locked | undefined;
  if (found === undefined) throw new Error(`package-lock.json has no ${name}`);
  return found;
}

/** The runtime's file in an npm package's archive. */
async function runtimeIn(archive: Buffer): Promise<Buffer> {
  // Loaded here: what builds the C library does so before it is installed.
  const { extract } = await import("tar-stream");
  const reader = extract();
  reader.end(gunzipSync(archive));
  for await (const entry of reader) {
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    if (entry.header.name === "package/bin/bun") return Buffer.concat(chunks);
  }
  throw new Error("the package holds no package/bin/bun");
}

/** Fetches the package of another architecture, which npm does not install here, and holds it to the lock file. */
async function fetched(name: string): Promise<string> {
  const { version, integrity } = await locked(name);
  const directory = join(cache, "runtime", `${name.replace("/", "-")}-${version}`);
  const path = join(directory, "bun");
  if (existsSync(path)) return path;
  await mkdir(directory, { recursive: true });
  const { stdout } = await run("npm", ["pack", `${name}@${version}`, "--silent", "--pack-destination", directory]);
  const archive = await readFile(join(directory, stdout.trim()));
  const digest = `sha512-${createHash("sha512").update(archive).digest("base64")}`;
  if (digest !== integrity) throw new Error(`${name}@${version} is ${digest}, package-lock.json says ${integrity}`);
  await writeFile(`${path}.part`, await runtimeIn(archive), { mode: 0o755 });
  await rename(`${path}.part`, path);
  return path;
}

/** Path of the JavaScript runtime that npm installed for this machine. @throws where it did not */
export function hostRuntime(): string {
  const path = installed(packages[hostArchitecture()]);
  if (path === undefined) throw new Error("the runtime is not installed: run npm ci on Linux with glibc");
  return path;
}

/**
 * How the runtime runs in the image: with little memory, and as no file says that lies in its working directory or home.
 * Without an environment of this kind it would run what a `bunfig.toml` names, read `.env`, and fetch packages.
 */
export const RUNTIME_ENVIRONMENT: Readonly<Record<string, string>> = {
  // --smol: collect garbage early, since memory is what a DaemonSet costs most.
  BUN_OPTIONS: "--smol --config=/dev/null --no-env-file --no-install",
  // The image's root is read-only.
  BUN_RUNTIME_TRANSPILER_CACHE_PATH: "0",
  // Machine code takes memory, and these programs wait most of the time.
  BUN_JSC_useJIT: "0",
};

/** The version of the runtime that the image of an architecture has. */
export async function runtimeVersion(architecture: Architecture): Promise<string> {
  return (await locked(packages[architecture])).version;
}

/** Path of the JavaScript runtime for an architecture: as npm installed it, else fetched. */
export async function runtimePath(architecture: Architecture): Promise<string> {
  const name = packages[architecture];
  return installed(name) ?? fetched(name);
}
