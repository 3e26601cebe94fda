import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Path of a program, looked for on PATH. */
export function which(program: string): string | undefined {
  const directories = (process.env["PATH"] ?? "").split(delimiter);
  return directories.map((directory) => join(directory, program)).find(existsSync);
}

/** What a suite needs and this machine lacks, in words; undefined if nothing is missing. */
export function missing(needs: { readonly root?: boolean; readonly programs?: readonly string[] }): string | undefined {
  const lacking = [
    ...(needs.root === true && process.getuid?.() !== 0 ? ["root"] : []),
    ...(needs.programs ?? []).filter((program) => which(program) === undefined),
  ];
  return lacking.length === 0 ? undefined : lacking.join(", ");
}

/** A suite that is skipped if its requirements are not met, with the reason in its name; the run then says so. */
export function suite(name: string, lacks: string | undefined, body: () => void): void {
  if (lacks === undefined) describe(name, body);
  else describe.skip(`${name} (needs ${lacks})`, body);
}
