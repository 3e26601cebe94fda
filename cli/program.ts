import { Command, CommanderError, Option } from "commander";
import { CNI_NAME } from "../cni/contract";
import { reasonOf } from "../cni/errors";
import { version } from "../constructs";
import { registry } from "../constructs/version";
import { addCheck } from "./check/command";
import { COMPLETE, completed, completion, SHELLS, type Shell } from "./completion";
import { withExamples } from "./examples";
import { addExplain } from "./explain/command";
import { fieldOf, VALUE_FLAGS, type ValueFlag } from "./flags";
import { flagNames, givenValues, type ValueOptions } from "./given-values";
import { complain, type Io, Unsuccessful } from "./io";
import { type ClusterOptions, clusterFlags, collect, Kubectl, KubectlError, unusedClusterFlags } from "./kubectl";
import { docs } from "./links";
import { foundElsewhere, removed } from "./removal";
import { addReport } from "./report/command";
import { FORMATS, type Format, formatted, installed, type Manifest } from "./resources";
import { valuesText } from "./values-text";
import { addVersion } from "./version";

function valueOption(flag: ValueFlag): Option {
  const { description, choices, default: value } = fieldOf(flag.path);
  const option = new Option(flag.flags, `${description} [${JSON.stringify(value)}]`);
  // For help and completion: wrong values are reported together with all other problems.
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
    .addOption(repeated("--set-file <name=file>", "Values from files, as helm reads them; may be repeated"))
    .option("--cni-namespace <name>", "Namespace to install into", CNI_NAME)
    .addOption(new Option("-o, --output <format>", "Format").choices(FORMATS).default("yaml"));
}

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
  takesValues(command).action(async (options: RenderOptions) => {
    const values = await givenValues(options, io);
    io.out(formatted(installed(values, options.cniNamespace, flagNames(options, values)), options.output));
  });
}

interface UninstallOptions extends RenderOptions, ClusterOptions {
  readonly ignoreCluster?: true;
}

/** Objects of kinds that only some clusters know; undefined if the cluster is not asked or does not answer. */
async function lookedFor(options: UninstallOptions, io: Io): Promise<readonly Manifest[] | undefined> {
  if (options.ignoreCluster === true) return undefined;
  try {
    return await foundElsewhere(new Kubectl(io, options), options.cniNamespace);
  } catch (error) {
    if (!(error instanceof KubectlError)) throw error;
    complain(io, error.message);
    complain(io, `more may be left in the cluster: ${docs("cli.md#uninstall-cni")}`);
    return undefined;
  }
}

function addUninstall(program: Command, io: Io): void {
  const command = program
    .command("uninstall-cni")
    .description("Print the objects of the plugin, except its namespace, for kubectl delete --ignore-not-found -f -")
    .option("--ignore-cluster", "Do not ask the cluster for objects of kinds that only some clusters know");
  for (const flag of clusterFlags()) command.addOption(flag);
  takesValues(command).action(async (options: UninstallOptions) => {
    const values = await givenValues(options, io);
    const { cniNamespace, output } = options;
    // Wrong values are refused before the cluster is asked.
    installed(values, cniNamespace, flagNames(options, values));
    io.out(formatted(removed(values, cniNamespace, await lookedFor(options, io)), output));
  });
}

/** The program's name as a kubectl plugin, which kubectl finds on PATH. */
const KUBECTL_PLUGIN = "kubectl-l5d_cni";
/** The program that kubectl runs to complete a command line of its plugin. */
const KUBECTL_COMPLETION = "kubectl_complete-l5d_cni";

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
  const copied = {
    writeOut: io.out,
    writeErr: io.err,
    getOutHelpWidth: () => io.columns ?? 80,
    getErrHelpWidth: () => io.errorColumns ?? 80,
  };
  program.description("Install and inspect the Linkerd CNI plugin").version(version).configureOutput(copied);
  program.helpOption("-h, --help", "Print this help");
  program.exitOverride();
  addInstall(program, io);
  addUninstall(program, io);
  addCheck(program, io, name === LINKERD_EXTENSION);
  addExplain(program, io);
  addReport(program, io);
  addVersion(program, io);
  program
    .command("values")
    .description("Print the values of the chart: name, type, default and meaning")
    .argument("[name]", "One value, or a group such as nri")
    .addOption(new Option("-o, --output <format>", "Format").choices(["text", "json"]).default("text"))
    .action((of: string | undefined, { output }: { output: "text" | "json" }) => {
      io.out(valuesText(output, of, io.columns));
    });
  program
    .command("completion")
    .description("Print the script that completes commands, flags and values in a shell")
    .argument("<shell>", SHELLS.join(", "))
    .action((shell: string) => {
      if (!SHELLS.some((known) => known === shell)) {
        throw new Error(`no completion for ${shell}: known are ${SHELLS.join(", ")}`);
      }
      io.out(completion(name === LINKERD_EXTENSION ? name : "l5d-cni", shell as Shell));
    });
  return withExamples(program);
}

/** Runs one command line and returns the exit code. @param name of the called file */
export async function runProgram(args: readonly string[], io: Io, name = "l5d-cni"): Promise<number> {
  const program = makeProgram(io, name);
  const [first, ...others] = name === KUBECTL_COMPLETION ? [COMPLETE, ...args] : args;
  try {
    // The words must be completed, not parsed: the command line may be incomplete.
    if (first === COMPLETE) io.out(completed(program, others));
    else if (first === METADATA) io.out(`${JSON.stringify({ name: LINKERD_EXTENSION, checks: "always" })}\n`);
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
