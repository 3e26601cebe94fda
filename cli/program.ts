import { Command, CommanderError, Option } from "commander";
import { CNI_NAME } from "../cni/contract";
import { reasonOf } from "../cni/errors";
import { version } from "../constructs";
import { choicesText } from "../constructs/helm/fields";
import { addCheck } from "./check/command";
import { completion, SHELLS, type Shell } from "./completion";
import { addExplain } from "./explain/command";
import { fieldOf, VALUE_FLAGS, type ValueFlag } from "./flags";
import { DEFAULT_REGISTRY, givenValues, type ValueOptions } from "./given-values";
import { type Io, Unsuccessful } from "./io";
import { type ClusterOptions, clusterFlags, Kubectl, KubectlError } from "./kubectl";
import { docs } from "./links";
import { foundElsewhere, removed } from "./removal";
import { addReport } from "./report/command";
import { FORMATS, type Format, formatted, installed, type Manifest } from "./resources";
import { valuesTable } from "./values-table";

const collect = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value];

function valueOption(flag: ValueFlag): Option {
  const { description, choices, default: value } = fieldOf(flag.path);
  const allowed = choices.length > 0 ? ` (one of ${choicesText(choices)})` : "";
  const option = new Option(flag.flags, `${description}${allowed} [${JSON.stringify(value)}]`);
  return flag.list === true ? option.argParser(collect) : option;
}

const repeated = (flags: string, description: string): Option =>
  new Option(flags, description).argParser(collect).default([], "none");

/** The flags by which values are given, on a command. */
function takesValues(command: Command): Command {
  for (const flag of VALUE_FLAGS) command.addOption(valueOption(flag));
  return command
    .option("-v, --linkerd-version <tag>", "Tag of the image, unless --cni-image-version is given")
    .option("--registry <registry>", `Registry of the image (LINKERD_DOCKER_REGISTRY overrides) [${DEFAULT_REGISTRY}]`)
    .addOption(
      repeated(
        "-f, --values <files>",
        "Values from YAML files, comma-separated, - for standard input; may be repeated",
      ),
    )
    .addOption(repeated("--set <name=value>", "Values, as helm reads them; may be repeated"))
    .addOption(repeated("--set-string <name=value>", "Values that are text, as helm reads them; may be repeated"))
    .addOption(repeated("--set-file <name=file>", "Values from files, as helm reads them; may be repeated"))
    .option("-n, --cni-namespace <name>", "Namespace to install into", CNI_NAME)
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
  takesValues(command).action((options: RenderOptions) => {
    io.out(formatted(installed(givenValues(options, io), options.cniNamespace), options.output));
  });
}

interface UninstallOptions extends RenderOptions, ClusterOptions {
  readonly ignoreCluster?: true;
}

/** What is there of what only some clusters know; undefined where the cluster is not asked, or does not say. */
async function lookedFor(options: UninstallOptions, io: Io): Promise<readonly Manifest[] | undefined> {
  if (options.ignoreCluster === true) return undefined;
  try {
    return await foundElsewhere(new Kubectl(io, options), options.cniNamespace);
  } catch (error) {
    if (!(error instanceof KubectlError)) throw error;
    io.err(`l5d-cni: ${error.message}\nl5d-cni: more may be left in the cluster: ${docs("cli.md#uninstall-cni")}\n`);
    return undefined;
  }
}

function addUninstall(program: Command, io: Io): void {
  const command = program
    .command("uninstall-cni")
    .description("Print what uninstalls the plugin, but not its namespace, for kubectl delete --ignore-not-found -f -")
    .option("--ignore-cluster", "Do not ask the cluster for objects of kinds that only some clusters know");
  for (const flag of clusterFlags()) command.addOption(flag);
  takesValues(command).action(async (options: UninstallOptions) => {
    const values = givenValues(options, io);
    const { cniNamespace, output } = options;
    // Wrong values are refused before the cluster is asked.
    installed(values, cniNamespace);
    io.out(formatted(removed(values, cniNamespace, await lookedFor(options, io)), output));
  });
}

/** The program with all its commands. */
export function makeProgram(io: Io, width: number): Command {
  const program = new Command("l5d-cni");
  const copied = { writeOut: io.out, writeErr: io.err };
  program.description("Install and inspect the Linkerd CNI plugin").version(version).configureOutput(copied);
  program.exitOverride();
  addInstall(program, io);
  addUninstall(program, io);
  addCheck(program, io);
  addExplain(program, io);
  addReport(program, io);
  program
    .command("values")
    .description("Print every value of the chart: type, default and meaning")
    .addOption(new Option("-o, --output <format>", "Format").choices(["table", "json"]).default("table"))
    .action((options: { output: "table" | "json" }) => io.out(valuesTable(options.output, width)));
  program
    .command("completion")
    .description("Print the script that completes commands and flags in a shell")
    .argument("<shell>", SHELLS.join(", "))
    .action((shell: string) => {
      if (!SHELLS.some((known) => known === shell)) {
        throw new Error(`no completion for ${shell}: known are ${SHELLS.join(", ")}`);
      }
      io.out(completion(program, shell as Shell));
    });
  return program;
}

/** Runs one command line and returns the exit code. */
export async function runProgram(args: readonly string[], io: Io, width: number): Promise<number> {
  try {
    await makeProgram(io, width).parseAsync([...args], { from: "user" });
    return 0;
  } catch (error) {
    // commander has said by itself what is wrong with the command line.
    if (error instanceof CommanderError) return error.exitCode;
    if (error instanceof Unsuccessful) return 1;
    io.err(`l5d-cni: ${reasonOf(error)}\n`);
    return 1;
  }
}
