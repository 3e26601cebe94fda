import type { Component } from "./components";

/** The subject of a bill of materials. */
interface Product extends Omit<Component, "licenseText" | "purl"> {
  readonly type: "application" | "container";
}

/** CycloneDX 1.6 as JSON. The same components give the same text: it has no time, no serial number and one order. */
export function billOfMaterials(parts: readonly Component[], { type, ...product }: Product): string {
  const component = (kind: string, { name, version, license, purl }: Omit<Component, "licenseText">) => ({
    type: kind,
    name,
    version,
    "bom-ref": purl,
    licenses: [{ license: { id: license } }],
    purl,
  });
  const subject = component(type, { ...product, purl: `pkg:oci/${product.name}@${product.version}` });
  // Two packages may each bring a copy of the same third one.
  const unique = new Map(parts.map((part) => [part.purl, component("library", part)]));
  const refs = [...unique.keys()].sort();
  const bom = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: subject },
    components: refs.map((ref) => unique.get(ref)),
    dependencies: [{ ref: subject.purl, dependsOn: refs }, ...refs.map((ref) => ({ ref }))],
  };
  return `${JSON.stringify(bom, undefined, 2)}\n`;
}
