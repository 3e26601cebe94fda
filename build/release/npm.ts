import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { sha256 } from "../image/layout";
import { root } from "../paths";
import { execute, ProgramError } from "./execute";

/** The target of the npm package. */
export type NpmTarget = { readonly directory: string } | { readonly registry: string };

/** The packed npm package. */
export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  /** The tarball. */
  readonly path: string;
  /** Of the tarball: `sha256:…`. */
  readonly digest: string;
  /** In the form of npm's registries. */
  readonly integrity: string;
  readonly target: NpmTarget;
}

/** Folders of the npm packages that are published. */
export const PACKAGES: readonly string[] = [join(root, "helm"), root];

/** Builds and packs an npm package for a target. @param into a directory */
export async function packNpm(target: NpmTarget, folder: string, into: string): Promise<NpmPackage> {
  // The build's output precedes the JSON.
  const said = (await execute("npm", ["pack", "--json", "--pack-destination", into], { cwd: folder })).toString();
  const json = said.slice(said.search(/^\[$/m));
  const [packed] = JSON.parse(json) as readonly [
    { name: string; version: string; filename: string; integrity: string },
  ];
  const { name, version, filename, integrity } = packed;
  const path = join(into, filename);
  return { name, version, path, digest: `sha256:${sha256(await readFile(path))}`, integrity, target };
}

/** The address of this version's tarball at its target. */
export const npmReference = ({ target, path, name, version }: NpmPackage): string =>
  "directory" in target
    ? join(resolve(target.directory), path.slice(path.lastIndexOf("/") + 1))
    : `${target.registry} ${name}@${version}`;

/** The integrity of this version at its target; undefined if absent. */
export async function publishedIntegrity(packed: NpmPackage): Promise<string | undefined> {
  const { target } = packed;
  if ("directory" in target) {
    const path = npmReference(packed);
    return existsSync(path)
      ? `sha512-${createHash("sha512")
          .update(await readFile(path))
          .digest("base64")}`
      : undefined;
  }
  const { registry } = target;
  const wanted = `${packed.name}@${packed.version}`;
  try {
    const found = await execute("npm", ["view", wanted, "dist.integrity", "--json", "--registry", registry]);
    return JSON.parse(found.toString()) as string;
  } catch (error) {
    if (error instanceof ProgramError && /"code": "E404"/.test(error.stdout)) return undefined;
    throw new Error(`${registry} ${wanted}: ${(error as Error).message}\n  check --npm-registry and the network`);
  }
}

/** Publishes the package to its target. */
export async function publishNpm(packed: NpmPackage): Promise<void> {
  const { target } = packed;
  if ("directory" in target) {
    await mkdir(target.directory, { recursive: true });
    await copyFile(packed.path, npmReference(packed));
    return;
  }
  const args = ["publish", packed.path, "--registry", target.registry, "--access", "public"];
  await execute("npm", args).catch((error: Error) => {
    throw new Error(
      `${error.message}\n  log in with an account that may publish: npm login --registry ${target.registry}`,
    );
  });
}
