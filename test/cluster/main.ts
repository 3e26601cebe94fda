import { spawn } from "node:child_process";
import { Command, Option } from "commander";
import pc from "picocolors";
import { root } from "../../build/paths";
import { Progress } from "../../build/progress";
import { buildEverything } from "./binaries";
import { down, status, up } from "./cluster";
import { Machine } from "./machine";
import { CONTAINERD_VERSIONS, type ContainerdVersion } from "./runtimes";

const progress = new Progress(process.stdout);

/** Starts a cluster; a signal that interrupts this ends everything that was started. */
async function start({ containerd }: { containerd: ContainerdVersion }): Promise<void> {
  const interruption = new AbortController();
  // Signals may come twice: npm passes on a signal that the terminal sends to all processes.
  for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => interruption.abort());
  await up(progress, containerd, interruption.signal).catch((error) => {
    throw interruption.signal.aborted ? new Error("interrupted: what had begun is ended") : error;
  });
  process.stdout.write("\nkubectl, helm and ctr: npm run cluster -- shell [COMMAND…]\n");
}

/** An interactive shell inside the machine, or one command there. */
async function shell(words: readonly string[]): Promise<void> {
  const machine = await Machine.find();
  if (machine === undefined) throw new Error("no cluster runs here: npm run cluster -- up");
  const [program, ...args] = machine.enter(words.length > 0 ? words : ["bash"], root) as [string, ...string[]];
  const child = spawn(program, args, { stdio: "inherit" });
  process.exitCode = await new Promise<number>((resolve) => child.once("close", (code) => resolve(code ?? 1)));
}

const program = new Command("cluster")
  .description("A one-node Kubernetes cluster in namespaces of its own: nothing of it is left after `down`.")
  .enablePositionalOptions()
  .configureOutput({ outputError: (text, write) => write(pc.red(text)) });
program
  .command("build")
  .description("build what is not cached of all that a cluster, and the suites in it, may need")
  .action(() => buildEverything(progress, new AbortController().signal));
program
  .command("up")
  .description("build what is not cached, and start the cluster")
  .addOption(
    new Option("--containerd <version>", "the distribution's containerd 1, or a newer one, built here: 2 is 2.2")
      .choices(CONTAINERD_VERSIONS)
      .default("1"),
  )
  .action(start);
program
  .command("down")
  .description("end the cluster and remove its state")
  .action(() => progress.step("cluster ended, its state removed", down));
program
  .command("status")
  .description("daemons, nodes and pods; fails where one of the daemons, or the cluster, does not run")
  .action(async () => {
    const { text, whole } = await status();
    process.stdout.write(text);
    process.exitCode = whole ? 0 : 1;
  });
program
  .command("shell [command...]")
  .description("a shell on the node, or one command there")
  .passThroughOptions()
  .allowUnknownOption()
  .action(shell);

program.parseAsync().catch((error: unknown) => {
  process.stderr.write(`${pc.red("cluster:")} ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
