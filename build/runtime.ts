import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const packages = {
  x64: "@oven/bun-linux-x64-baseline",
  arm64: "@oven/bun-linux-aarch64",
} as const;

export type Architecture = keyof typeof packages;

/** Path of the JavaScript runtime for an architecture, as npm installed it. @throws where it did not */
export function runtimePath(architecture: string): string {
  const name = packages[architecture as Architecture];
  if (name === undefined) throw new Error(`no runtime for ${architecture}: supported are x64 and arm64`);
  const manifest = createRequire(__filename).resolve(`${name}/package.json`);
  const path = join(dirname(manifest), "bin", "bun");
  if (!existsSync(path)) throw new Error(`${path} is missing: run npm ci on Linux with glibc`);
  return path;
}
