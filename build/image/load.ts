import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { outputs } from "../paths";

const run = promisify(execFile);

/** How each program that may be on a machine takes an OCI archive. */
const LOADERS: readonly { readonly program: string; readonly args: readonly string[] }[] = [
  { program: "ctr", args: ["--namespace", "k8s.io", "images", "import"] },
  { program: "docker", args: ["load", "--input"] },
  { program: "podman", args: ["load", "--input"] },
  { program: "kind", args: ["load", "image-archive"] },
  { program: "k3s", args: ["ctr", "images", "import"] },
];

interface Outcome {
  readonly program: string;
  /** Undefined where the program is not there. */
  readonly loaded: boolean | undefined;
  readonly detail: string;
}

async function load(program: string, args: readonly string[]): Promise<Outcome> {
  try {
    const { stdout } = await run(program, [...args, outputs.image]);
    return { program, loaded: true, detail: stdout.trim().split("\n").at(-1) ?? "" };
  } catch (error) {
    const { code, stderr = "", message } = error as NodeJS.ErrnoException & { readonly stderr?: string };
    if (code === "ENOENT") return { program, loaded: undefined, detail: "not installed" };
    return { program, loaded: false, detail: stderr.trim().split("\n")[0] || message };
  }
}

/**
 * Hands the image to every container runtime of this machine that answers.
 * @returns a line for each
 * @throws where none took it
 */
export async function loadImage(): Promise<string> {
  const outcomes: Outcome[] = [];
  for (const { program, args } of LOADERS) outcomes.push(await load(program, args));
  const words = (loaded: boolean | undefined) => (loaded === undefined ? "-" : loaded ? "loaded" : "failed");
  const lines = outcomes.map(
    ({ program, loaded, detail }) => `${program.padEnd(7)} ${words(loaded).padEnd(7)} ${detail}`,
  );
  if (!outcomes.some(({ loaded }) => loaded))
    throw new Error(`no container runtime took the image\n${lines.join("\n")}`);
  return `\n${lines.join("\n")}`;
}
