import { billOfMaterials } from "./sbom";

const product = { type: "application", name: "l5d-cni", version: "1.0.0", license: "Apache-2.0" } as const;
const yaml = { name: "yaml", version: "2.9.1", license: "ISC", purl: "pkg:npm/yaml@2.9.1", licenseText: "" };
const colors = { ...yaml, name: "@colors/colors", license: "MIT", purl: "pkg:npm/%40colors/colors@2.9.1" };

test("a bill of materials is CycloneDX 1.6: the subject, each component once, and what the subject depends on", () => {
  const component = (type: string, name: string, version: string, license: string, purl: string) => ({
    ...{ type, name, version, "bom-ref": purl, licenses: [{ license: { id: license } }], purl },
  });
  expect(JSON.parse(billOfMaterials([yaml, colors, yaml], product))).toEqual({
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: component("application", "l5d-cni", "1.0.0", "Apache-2.0", "pkg:oci/l5d-cni@1.0.0") },
    components: [
      component("library", "@colors/colors", "2.9.1", "MIT", "pkg:npm/%40colors/colors@2.9.1"),
      component("library", "yaml", "2.9.1", "ISC", "pkg:npm/yaml@2.9.1"),
    ],
    dependencies: [
      { ref: "pkg:oci/l5d-cni@1.0.0", dependsOn: ["pkg:npm/%40colors/colors@2.9.1", "pkg:npm/yaml@2.9.1"] },
      { ref: "pkg:npm/%40colors/colors@2.9.1" },
      { ref: "pkg:npm/yaml@2.9.1" },
    ],
  });
});

test("the order of the components does not change it", () => {
  expect(billOfMaterials([yaml, colors], product)).toBe(billOfMaterials([colors, yaml], product));
});
