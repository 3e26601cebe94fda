import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import Ajv, { type ErrorObject } from "ajv";

/** The schemas that CycloneDX publishes, as the library brings them. */
const schemas = join(
  dirname(createRequire(__filename).resolve("@cyclonedx/cyclonedx-library/package.json")),
  "res",
  "schema",
);

const readSchema = async (name: string) =>
  JSON.parse(await readFile(join(schemas, `${name}.SNAPSHOT.schema.json`), "utf8")) as object;

/** Errors in a bill of materials by the schema of CycloneDX 1.6, except for the format of strings. */
export async function schemaErrors(bom: unknown): Promise<readonly ErrorObject[]> {
  const ajv = new Ajv({ strict: false, validateFormats: false });
  for (const name of ["spdx", "cryptography-defs", "jsf-0.82"]) {
    ajv.addSchema(await readSchema(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`);
  }
  const validate = ajv.compile(await readSchema("bom-1.6"));
  validate(bom);
  return validate.errors ?? [];
}
