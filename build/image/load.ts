import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A program that can load an image's archive. */
interface Loader {
  readonly program: string;
  /** Prints something if a target exists: a daemon that answers, a store, a cluster. */
  readonly ask: readonly string[];
  /** Loads the archive given after these arguments. */
  readonly load: readonly string[];
}

const LOADERS: readonly Loader[] = [
  { program: "ctr", ask: ["version"], load: ["--namespace", "k8s.io", "images", "import"] },
  { program: "docker", ask: ["version"], load: ["load", "--input"] },
  { program: "podman", ask: ["info"], load: ["load", "--input"] },
  { program: "kind", ask: ["get", "nodes"], load: ["load", "image-archive"] },
  { program: "k3s", ask: ["ctr", "version"], load: ["ctr", "images", "import"] },
];

/** The result of loading the archive into one program, in words, and whether it needs a remedy. */
interface LoadOutcome {
  readonly word: "-" | "silent" | "refused" | "loaded";
  readonly detail: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Timeout for a daemon's answer. */
const TIMEOUT_MS = 30_000;

const lastLine = (text: string) => text.trim().split("\n").at(-1) ?? "";

async function load({ program, ask, load }: Loader, archive: string, env: Environment): Promise<LoadOutcome> {
  try {
    const { stdout, stderr } = await run(program, [...ask], { env, timeout: TIMEOUT_MS });
    if (stdout.trim() === "") return { word: "silent", detail: lastLine(stderr) };
  } catch (error) {
    const { code, stderr = "", message } = error as NodeJS.ErrnoException & { readonly stderr?: string };
    if (code === "ENOENT") return { word: "-", detail: "not installed" };
    return { word: "silent", detail: lastLine(stderr) || message };
  }
  try {
    const { stdout } = await run(program, [...load, archive], { env });
    return { word: "loaded", detail: lastLine(stdout) };
  } catch (error) {
    const { stderr = "", message } = error as Error & { readonly stderr?: string };
    return { word: "refused", detail: lastLine(stderr) || message };
  }
}

/**
 * Loads an image's archive into every container runtime of this machine that answers. @returns a line for each @throws
 * without an archive, if one refuses it, or if none accepts it
 */
export async function loadImage(archive: string, environment: Environment): Promise<string> {
  if (!existsSync(archive)) throw new Error("there is no image yet: npm run image");
  const outcomes = new Map<string, LoadOutcome>();
  for (const loader of LOADERS) outcomes.set(loader.program, await load(loader, archive, environment));
  const lines = [...outcomes].map(([program, { word, detail }]) => `${program.padEnd(7)} ${word.padEnd(7)} ${detail}`);
  const table = lines.map((line) => `\n${line.trimEnd()}`).join("");
  const of = (word: LoadOutcome["word"]) => [...outcomes].filter(([, outcome]) => outcome.word === word);
  const refused = of("refused").map(([program]) => program);
  if (refused.length > 0) throw new Error(`${refused.join(" and ")} did not take the image${table}`);
  if (of("loaded").length === 0) throw new Error(`no container runtime took the image${table}`);
  return table;
}
