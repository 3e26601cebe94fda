import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "../../build/paths";
import type { Config } from "./archive";

/** What the last stage of the Containerfile says: its instructions, a line each. */
async function instructions(): Promise<readonly string[]> {
  const text = await readFile(join(root, "Containerfile"), "utf8");
  return text
    .slice(text.lastIndexOf("\nFROM "))
    .replaceAll(/\s*\\\n\s*/g, " ")
    .trim()
    .split("\n");
}

/** `NAME=value` and `NAME="value"` pairs. */
const pairs = (text: string) =>
  [...text.matchAll(/(\S+?)=(?:"([^"]*)"|(\S+))/g)].map(([, name, quoted, bare]) => [name, quoted ?? bare]);

/** The image's configuration that the Containerfile makes, and what it copies into it. */
export async function readContainerfile(): Promise<{
  readonly base: string;
  readonly copies: string;
  readonly config: Config;
}> {
  const found = new Map(
    (await instructions()).map((line) => [line.split(" ", 1)[0], line.slice(line.indexOf(" ") + 1)]),
  );
  const of = (word: string) => found.get(word) ?? "";
  return {
    base: of("FROM"),
    copies: of("COPY"),
    config: {
      User: of("USER"),
      // A directory of nobody's choice is the root.
      WorkingDir: found.get("WORKDIR") ?? "/",
      Entrypoint: JSON.parse(of("ENTRYPOINT")),
      Env: pairs(of("ENV")).map((pair) => pair.join("=")),
      Labels: Object.fromEntries(pairs(of("LABEL"))),
    },
  };
}
