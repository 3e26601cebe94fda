import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Enums, Models, Serialize, SPDX, Spec } from "@cyclonedx/cyclonedx-library";
import { root } from "../paths";
import type { Component } from "./components";

function licenseOf(name: string, license: string): Models.SpdxLicense {
  if (!SPDX.isSupportedSpdxId(license)) throw new Error(`${name}: "${license}" is not an SPDX licence identifier`);
  return new Models.SpdxLicense(license);
}

/** The subject of a bill of materials. */
export interface Product {
  readonly type: Enums.ComponentType;
  readonly name: string;
  /** Package URL without a version. */
  readonly purl: string;
}

const IMAGE: Product = { type: Enums.ComponentType.Container, name: "linkerd-cni", purl: "pkg:oci/linkerd-cni" };
/** The command line. */
export const CLI: Product = { type: Enums.ComponentType.Application, name: "l5d-cni", purl: "pkg:oci/l5d-cni" };

/** CycloneDX 1.6 as JSON, without times and random numbers, so that the same components give the same text. */
export async function billOfMaterials(parts: readonly Component[], product = IMAGE): Promise<string> {
  const component = (type: Enums.ComponentType, part: Omit<Component, "licenseText">) =>
    new Models.Component(type, part.name, {
      version: part.version,
      purl: part.purl,
      bomRef: part.purl,
      licenses: new Models.LicenseRepository([licenseOf(part.name, part.license)]),
    });
  const { version, license } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as Component;
  const { type, name, purl } = product;
  const subject = component(type, { name, version, license, purl: `${purl}@${version}` });
  const components = parts.map((part) => component(Enums.ComponentType.Library, part));
  for (const part of components) subject.dependencies.add(part.bomRef);
  const bom = new Models.Bom({
    metadata: new Models.Metadata({ component: subject }),
    components: new Models.ComponentRepository(components),
  });
  const serializer = new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6));
  return `${serializer.serialize(bom, { sortLists: true, space: 2 })}\n`;
}
