import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Enums, Models, Serialize, SPDX, Spec } from "@cyclonedx/cyclonedx-library";
import { bundledPackages } from "../bundle";
import { root } from "../paths";

/** One thing that the image is made of. */
export interface Ingredient {
  readonly name: string;
  readonly version: string;
  /** SPDX identifier. */
  readonly license: string;
  /** Package URL. */
  readonly purl: string;
  /** In what it differs from what its makers published. */
  readonly description?: string;
}

interface PackageManifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

async function npmIngredient(directory: string): Promise<Ingredient> {
  const manifest = JSON.parse(await readFile(join(directory, "package.json"), "utf8")) as PackageManifest;
  const { name, version, license } = manifest;
  return { name, version, license, purl: `pkg:npm/${name.replace("@", "%40")}@${version}` };
}

/** The GNU C library says in its own text who built it, and as what version. */
async function glibcIngredient(library: string): Promise<Ingredient> {
  const text = (await readFile(library)).toString("latin1");
  const found = /GNU C Library \(([^)]+)\) \w+ release version (\d+\.\d+)/.exec(text);
  if (found === null) throw new Error(`${library} does not say which GNU C library it is`);
  const [, build = "", version = ""] = found;
  const purl = `pkg:generic/glibc@${version}?build=${encodeURIComponent(build)}`;
  const description = "as built, but for the loader, which reads no /etc/ld.so.preload";
  return { name: "glibc", version, license: "LGPL-2.1-or-later", purl, description };
}

/**
 * What an image is made of: the runtime, the C library, and every npm package whose code was bundled.
 * @param entries the programs' sources
 * @param libc path of the C library on this machine
 */
export async function ingredients(entries: readonly string[], bun: string, libc: string): Promise<Ingredient[]> {
  const packages = await bundledPackages(entries);
  return [
    { name: "bun", version: bun, license: "MIT", purl: `pkg:generic/bun@${bun}` },
    await glibcIngredient(libc),
    ...(await Promise.all(packages.map((folder) => npmIngredient(join(root, folder))))),
  ];
}

function licenseOf(name: string, license: string): Models.SpdxLicense {
  if (!SPDX.isSupportedSpdxId(license)) throw new Error(`${name}: "${license}" is not an SPDX licence identifier`);
  return new Models.SpdxLicense(license);
}

/** CycloneDX 1.6 as JSON, without a time or a random number: the same ingredients give the same text. */
export async function billOfMaterials(parts: readonly Ingredient[]): Promise<string> {
  const component = (type: Enums.ComponentType, { name, version, license, purl, description }: Ingredient) =>
    new Models.Component(type, name, {
      version,
      purl,
      bomRef: purl,
      ...(description === undefined ? {} : { description }),
      licenses: new Models.LicenseRepository([licenseOf(name, license)]),
    });
  const about = await npmIngredient(root);
  const product = { ...about, name: "linkerd-cni", purl: `pkg:oci/linkerd-cni@${about.version}` };
  const subject = component(Enums.ComponentType.Container, product);
  const components = parts.map((part) => component(Enums.ComponentType.Library, part));
  for (const part of components) subject.dependencies.add(part.bomRef);
  const bom = new Models.Bom({
    metadata: new Models.Metadata({ component: subject }),
    components: new Models.ComponentRepository(components),
  });
  const serializer = new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6));
  return `${serializer.serialize(bom, { sortLists: true, space: 2 })}\n`;
}
