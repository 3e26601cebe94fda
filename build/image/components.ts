import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { BuildOptions } from "esbuild";
import { bundledPackages } from "../bundle";
import { compilerFolder, RESOLVED, SOURCES, sourcesFolder } from "../engine";
import { root } from "../paths";
import { entries } from "../programs";

/** Third-party software in the image. */
export interface Component {
  readonly name: string;
  readonly version: string;
  /** SPDX identifier. */
  readonly license: string;
  /** Package URL. */
  readonly purl: string;
  /** The texts required by its licence: copyright notices and the licence. */
  readonly licenseText: string;
}

/** The value of a macro in a header file, without quotes. @throws if it does not define it */
function macro(header: string, name: string): string {
  const value = new RegExp(`^#define ${name}\\s+"?([^"\\s]*)"?\\s*$`, "m").exec(header)?.[1];
  if (value === undefined) throw new Error(`a header of the C sources does not define ${name}`);
  return value;
}

async function quickjs(): Promise<Component> {
  const folder = join(sourcesFolder(), SOURCES.engine);
  const header = await readFile(join(folder, "quickjs.h"), "utf8");
  const version = ["MAJOR", "MINOR", "PATCH"].map((part) => macro(header, `QJS_VERSION_${part}`)).join(".");
  return {
    name: "quickjs-ng",
    version,
    license: "MIT",
    purl: `pkg:github/quickjs-ng/quickjs@v${version}`,
    licenseText: await readFile(join(folder, "LICENSE"), "utf8"),
  };
}

async function mbedtls(): Promise<Component> {
  const header = await readFile(join(sourcesFolder(), SOURCES.tls, "include", "mbedtls", "build_info.h"), "utf8");
  const version = macro(header, "MBEDTLS_VERSION_STRING");
  return {
    name: "mbedtls",
    version,
    license: "Apache-2.0",
    purl: `pkg:github/mbed-tls/mbedtls@mbedtls-${version}`,
    // Its LICENSE also contains the text of the other licence, which was not chosen.
    licenseText:
      "Copyright The Mbed TLS Contributors\n\n" +
      "Mbed TLS is offered under Apache-2.0 or GPL-2.0-or-later. It is used here under Apache-2.0: see LICENSE beside this file.\n",
  };
}

async function musl(): Promise<Component> {
  const folder = join(compilerFolder(), "lib", "libc", "musl");
  const version = macro(await readFile(join(folder, "src", "internal", "version.h"), "utf8"), "VERSION");
  return {
    name: "musl",
    version,
    license: "MIT",
    purl: `pkg:generic/musl@${version}`,
    licenseText: await readFile(join(folder, "COPYRIGHT"), "utf8"),
  };
}

/** Arithmetic without processor instructions, linked by the compiler. */
async function compilerRuntime(): Promise<Component> {
  const { version } = JSON.parse(await readFile(join(compilerFolder(), "package.json"), "utf8")) as PackageManifest;
  return {
    name: "zig-compiler-rt",
    version,
    license: "MIT",
    purl: `pkg:github/ziglang/zig@${encodeURIComponent(version)}`,
    licenseText: await readFile(join(compilerFolder(), "LICENSE"), "utf8"),
  };
}

interface PackageManifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

/** An npm package in a bundle. @throws if it has no licence file */
async function npmPackage(folder: string): Promise<Component> {
  const manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as PackageManifest;
  const { name, version, license } = manifest;
  const files = (await readdir(folder)).filter((file) => /^(licen[cs]e|notice|copyright|copying)/i.test(file)).sort();
  if (files.length === 0) throw new Error(`the npm package ${name} has no file with its licence`);
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")));
  return {
    name,
    version,
    license,
    purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
    licenseText: texts.join("\n"),
  };
}

/** The npm packages whose code the bundles of these entries hold. @param options by which their imports are resolved */
export async function npmComponents(entries: readonly string[], options?: BuildOptions): Promise<readonly Component[]> {
  const folders = await bundledPackages(entries, options);
  return Promise.all(folders.map((folder) => npmPackage(join(root, folder))));
}

/** Third-party parts of the image: libraries in the executable, and npm packages in its scripts. */
export async function componentsOf(): Promise<readonly Component[]> {
  const packages = npmComponents(await entries(), RESOLVED);
  return [...(await Promise.all([quickjs(), mbedtls(), musl(), compilerRuntime()])), ...(await packages)];
}
