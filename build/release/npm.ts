import { copyFile, mkdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { sha256 } from "../image/layout";
import { root } from "../paths";
import { differingFiles } from "./difference";
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
}

/** Folders of the npm packages that are published. */
export const PACKAGES: readonly string[] = [join(root, "helm"), root];

/** Builds and packs an npm package. @param into a directory */
export async function packNpm(folder: string, into: string): Promise<NpmPackage> {
  // The build's output precedes the JSON.
  const said = (await execute("npm", ["pack", "--json", "--pack-destination", into], { cwd: folder })).toString();
  const json = said.slice(said.search(/^\[$/m));
  const [packed] = JSON.parse(json) as readonly [
    { name: string; version: string; filename: string; integrity: string },
  ];
  const { name, version, filename, integrity } = packed;
  const path = join(into, filename);
  return { name, version, path, digest: `sha256:${sha256(await readFile(path))}`, integrity };
}

/** The address of this version's tarball at a target. */
export const npmReference = (target: NpmTarget, { path, name, version }: NpmPackage): string =>
  "directory" in target
    ? join(resolve(target.directory), path.slice(path.lastIndexOf("/") + 1))
    : `${target.registry} ${name}@${version}`;

/**
 * Looks for the package's version at a target.
 * @param work a directory for what is fetched
 * @returns what differs; nothing if it is the same; undefined if the version is not there
 */
export async function findNpm(
  target: NpmTarget,
  packed: NpmPackage,
  work: string,
): Promise<readonly string[] | undefined> {
  const before =
    "directory" in target ? await readIfThere(npmReference(target, packed)) : await fetchNpm(target, packed, work);
  if (before === undefined) return undefined;
  const ours = await readFile(packed.path);
  return ours.equals(before) ? [] : differingFiles(ours, before);
}

async function readIfThere(path: string): Promise<Buffer | undefined> {
  return readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}

async function fetchNpm(
  { registry }: { registry: string },
  packed: NpmPackage,
  work: string,
): Promise<Buffer | undefined> {
  const into = join(work, "published");
  await mkdir(into, { recursive: true });
  const wanted = `${packed.name}@${packed.version}`;
  const args = ["pack", wanted, "--json", "--registry", registry, "--pack-destination", into];
  try {
    const [fetched] = JSON.parse((await execute("npm", args)).toString()) as readonly [{ filename: string }];
    return await readFile(join(into, fetched.filename));
  } catch (error) {
    if (error instanceof ProgramError && /"code": "(E404|ETARGET)"/.test(error.stdout)) return undefined;
    throw new Error(`${registry} ${wanted}: ${(error as Error).message}\n  check --npm-registry and the network`);
  }
}

/** Publishes the package to its target. */
export async function publishNpm(target: NpmTarget, packed: NpmPackage): Promise<void> {
  if ("directory" in target) {
    await mkdir(target.directory, { recursive: true });
    await copyFile(packed.path, npmReference(target, packed));
    return;
  }
  const args = ["publish", packed.path, "--registry", target.registry, "--access", "public"];
  await execute("npm", args).catch((error: Error) => {
    throw new Error(
      `${error.message}\n  log in with an account that may publish: npm login --registry ${target.registry}`,
    );
  });
}
