import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "../paths";
import type { Component } from "./components";

const LINE = "-".repeat(80);

/** Each component's copyright and licence. */
export const licences = (components: readonly Component[]): readonly string[] =>
  components.map(
    ({ name, version, license, licenseText }) => `${LINE}\n${name} ${version} (${license})\n\n${licenseText.trim()}\n`,
  );

/** The project's NOTICE, and after it each component's copyright and licence. */
export async function notice(components: readonly Component[]): Promise<string> {
  return [await readFile(join(root, "NOTICE"), "utf8"), ...licences(components)].join("\n");
}
