import { Command, CommanderError, Option } from "commander";
import { CNI_NAME } from "../cni/contract";
import { reasonOf } from "../cni/errors";
import { version } from "../constructs";
import { registry } from "../constructs/version";
import { addCheck } from "./check/command";
import { addExplain } from "./explain/command";
import { fieldOf, VALUE_FLAGS, type ValueFlag } from "./flags";
import { givenValues, type ValueOptions } from "./given-values";
import { complain, type Io, Unsuccessful } from "./io";
import { type ClusterOptions, clusterFlags, collect, Kubectl, unusedClusterFlags } from "./kubectl";
import { foundElsewhere, removed } from "./removal";
import { addReport } from "./report/command";
import { FORMATS, type Format, formatted, installed } from "./resources";

function valueOption(flag: ValueFlag): Option {
  const { description, choices, default: value } = fieldOf(flag.path);
  const option = new Option(flag.flags, `${description} [${JSON.stringify(value)}]`);
  // For help: wrong values are reported together with all other problems.
  if (choices.length > 0) option.argChoices = [...choices].filter((choice) => choice !== "");
  return flag.list === true ? option.argParser(collect) : option;
}

const repeated = (flags: string, description: string): Option =>
  new Option(flags, description).argParser(collect).default([], "none");

/** Adds the flags that set values to a command. */
function takesValues(command: Command): Command {
  for (const flag of VALUE_FLAGS) command.addOption(valueOption(flag));
  return command
    .option("-v, --linkerd-version <tag>", "Tag of the image, unless --cni-image-version is given")
    .option("--registry <registry>", `Registry of the image (LINKERD_DOCKER_REGISTRY overrides) [${registry}]`)
    .addOption(
      repeated(
        "-f, --values <files>",
        "Values from YAML files or URLs, comma-separated, - for standard input; may be repeated",
      ),
    )
    .addOption(repeated("--set <name=value>", "Values, as helm reads them; may be repeated"))
    .addOption(repeated("--set-string <name=value>", "Values that are text, as helm reads them; may be repeated"))
    .addOption(repeated("--set-file <name=file>", "Values from files, as helm reads them; may be repeated"));
}

const takesNamespace = (command: Command): Command =>
  command
    .option("--cni-namespace <name>", "Namespace of the installation", CNI_NAME)
    .addOption(new Option("-o, --output <format>", "Format").choices(FORMATS).default("yaml"));

interface RenderOptions extends ValueOptions {
  readonly cniNamespace: string;
  readonly output: Format;
}

function addInstall(program: Command, io: Io): void {
  const command = program
    .command("install-cni")
    .description("Print the manifests that install the plugin, for kubectl apply -f -")
    .option("--ignore-cluster", "Accepted for compatibility: this command never asks the cluster");
  for (const flag of unusedClusterFlags()) command.addOption(flag);
  takesNamespace(takesValues(command)).action(async (options: RenderOptions) => {
    const values = await givenValues(options, io);
    io.out(formatted(installed(values, options.cniNamespace), options.output));
  });
}

interface UninstallOptions extends ClusterOptions {
  readonly cniNamespace: string;
  readonly output: Format;
}

function addUninstall(program: Command, io: Io): void {
  const command = program
    .command("uninstall-cni")
    .description("Print the objects of the plugin, except its namespace, for kubectl delete --ignore-not-found -f -");
  for (const flag of clusterFlags()) command.addOption(flag);
  takesNamespace(command).action(async (options: UninstallOptions) => {
    const { cniNamespace, output } = options;
    const elsewhere = await foundElsewhere(new Kubectl(io, options), cniNamespace);
    io.out(formatted(removed(cniNamespace, elsewhere), output));
  });
}

/** Example command lines for help, by command; each without the program's name, with a description. */
const EXAMPLES: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  "install-cni": [
    ["install-cni | kubectl apply -f -", "with the defaults"],
    ["install-cni --platform k3s -f values.yaml | kubectl apply -f -", "k3s, with values of a file"],
    ["install-cni --set nri.enabled=true", "look at the manifests first"],
  ],
  "uninstall-cni": [["uninstall-cni | kubectl delete --ignore-not-found -f -", "all but the namespace"]],
  check: [
    ["check --pre", "before an installation"],
    ["check --wait 2m", "after it, until all is well"],
    ["check -o json", "for a program"],
  ],
  explain: [
    ["explain shop/cart-7d9f", "one pod"],
    ["explain deploy/web -n shop --rules", "the pods of a Deployment, with the rules"],
    ["explain -f pod.yaml", "a pod before it is created"],
  ],
  report: [
    ["report", "into the working directory"],
    ["report -o - | tar tzf -", "list its files"],
  ],
};

/** Adds the examples to the help of each command. */
function withExamples(program: Command): Command {
  for (const command of program.commands) {
    const examples = EXAMPLES[command.name()] ?? [];
    const lines = examples.map(([line, what]) => `  # ${what}\n  ${program.name()} ${line}`);
    if (lines.length > 0) command.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
  }
  return program;
}

/** The program's name as a kubectl plugin, which kubectl finds on PATH. */
const KUBECTL_PLUGIN = "kubectl-l5d_cni";

/** The program's name as an extension of linkerd's command, which finds it on PATH: `linkerd cni`, `linkerd check`. */
const LINKERD_EXTENSION = "linkerd-cni";
/** Asks an extension whether `linkerd check` also runs its checks. */
const METADATA = "_extension-metadata";

const NAMES: Readonly<Record<string, string>> = {
  [KUBECTL_PLUGIN]: "kubectl l5d-cni",
  [LINKERD_EXTENSION]: "linkerd cni",
};

/** The program with all its commands. @param name of the called file */
function makeProgram(io: Io, name: string): Command {
  const program = new Command(NAMES[name] ?? "l5d-cni");
  const copied = { writeOut: io.out, writeErr: io.err };
  program.description("Install and inspect the Linkerd CNI plugin").version(version).configureOutput(copied);
  program.helpOption("-h, --help", "Print this help");
  program.exitOverride();
  addInstall(program, io);
  addUninstall(program, io);
  addCheck(program, io, name === LINKERD_EXTENSION);
  addExplain(program, io);
  addReport(program, io);
  return withExamples(program);
}

/** Runs one command line and returns the exit code. @param name of the called file */
export async function runProgram(args: readonly string[], io: Io, name = "l5d-cni"): Promise<number> {
  const program = makeProgram(io, name);
  try {
    if (args[0] === METADATA) io.out(`${JSON.stringify({ name: LINKERD_EXTENSION, checks: "always" })}\n`);
    else await program.parseAsync([...args], { from: "user" });
    return 0;
  } catch (error) {
    // commander has already reported what is wrong with the command line.
    if (error instanceof CommanderError) return error.exitCode;
    if (error instanceof Unsuccessful) return 1;
    complain(io, reasonOf(error));
    return 1;
  }
}
