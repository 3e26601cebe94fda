import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { Command } from "commander";
import { bundle } from "../build/bundle";
import { outputs, root } from "../build/paths";
import { buildPlugin } from "../build/programs";
import { Progress } from "../build/progress";
import { reasonOf } from "../cni/errors";
import type { Handover } from "./inside";

const run = promisify(execFile);
const scripts = join(root, ".cache", "demo");

interface Options {
  readonly output: "text" | "json";
}

/** Arguments of unshare, for namespaces that end with their first process. */
const NAMESPACES = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];

/** An unprivileged user gets a user namespace, with all users from /etc/subuid, or else with root only. */
const USERS: readonly (readonly string[])[] =
  process.getuid?.() === 0
    ? [[]]
    : [
        ["--user", "--map-root-user", "--map-auto"],
        ["--user", "--map-root-user"],
      ];

/** Programs that a sandbox needs, and the package that has each. */
const PROGRAMS = { unshare: "util-linux", nsenter: "util-linux", ip: "iproute2" };

const isOnPath = (program: string) =>
  (process.env["PATH"] ?? "").split(delimiter).some((directory) => existsSync(join(directory, program)));

/** How to run a program in a sandbox on this machine, or why that is impossible. */
async function findSandbox(): Promise<{ readonly command: readonly string[] } | { readonly obstacle: string }> {
  const absent = Object.entries(PROGRAMS).find(([program]) => !isOnPath(program));
  if (absent !== undefined) return { obstacle: `${absent[0]} is not installed: install ${absent[1]}` };
  let obstacle = "";
  for (const users of USERS) {
    try {
      await run("unshare", [...users, ...NAMESPACES, "ip", "link", "set", "lo", "up"]);
      return { command: ["unshare", ...users, ...NAMESPACES] };
    } catch (error) {
      obstacle = (error as { readonly stderr?: string }).stderr?.trim() ?? reasonOf(error);
    }
  }
  return { obstacle };
}

async function build(progress: Progress): Promise<void> {
  await mkdir(scripts, { recursive: true });
  await progress.step("build the plugin and its installer", () => buildPlugin());
  await progress.step("build the demonstration", async () => {
    for (const name of ["inside", "pod-process"]) {
      await bundle(join(root, "demo", `${name}.ts`), join(scripts, `${name}.js`));
    }
    await bundle(join(root, "demo", "primary-plugin.ts"), join(scripts, "primary-plugin.js"), {
      banner: { js: `#!${process.execPath}` },
    });
  });
}

async function main(options: Options): Promise<number> {
  const json = options.output === "json";
  const progress = new Progress(json ? process.stderr : process.stdout);
  if (process.platform !== "linux") {
    progress.note(`The plugin and its node are Linux; on ${process.platform} only npm test and the charts can be run.`);
    return 0;
  }
  await build(progress);
  const sandbox = await findSandbox();
  const handover: Handover = {
    json,
    executable: outputs.plugin,
    manifests: outputs.manifests,
    podProcess: join(scripts, "pod-process.js"),
    primaryPlugin: join(scripts, "primary-plugin.js"),
    ...("obstacle" in sandbox ? sandbox : {}),
  };
  const inside = [process.execPath, join(scripts, "inside.js"), JSON.stringify(handover)];
  const [program = "", ...args] = "command" in sandbox ? [...sandbox.command, ...inside] : inside;
  const child = spawn(program, args, { stdio: "inherit" });
  return new Promise((resolve) => child.once("exit", (code) => resolve(code ?? 1)));
}

const command = new Command("npm start --")
  .description("Installs the plugin on a node made for this run, starts pods, sends traffic, and takes all away again.")
  .option("--output <format>", "text or json", "text")
  .action(async (options: Options) => {
    process.exitCode = await main(options);
  });
command.parseAsync().catch((error: unknown) => {
  process.stderr.write(`${reasonOf(error)}\n`);
  process.exitCode = 1;
});
