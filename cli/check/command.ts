import { type Command, InvalidArgumentError, Option } from "commander";
import pc from "picocolors";
import { CNI_NAME } from "../../cni/contract";
import { type Io, Unsuccessful } from "../io";
import { type ClusterOptions, clusterFlags, Kubectl } from "../kubectl";
import { apiFinding } from "./access";
import { inspect } from "./inspect";
import { installText, type Preparation, prepare, readBefore } from "./pre";
import { reportJson, reportText, succeeded } from "./report";
import { takeSnapshot } from "./snapshot";

interface Options extends ClusterOptions {
  readonly cniNamespace: string;
  /** Checks before an installation. */
  readonly pre?: true;
  /** Milliseconds. */
  readonly wait: number;
  readonly output: "table" | "json";
}

const UNITS = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const;

/** Seconds, or a duration as in linkerd's command: `90`, `90s`, `1m30s`. @returns milliseconds */
function duration(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * UNITS.s;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s)/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join("") !== text) {
    throw new InvalidArgumentError("Write seconds, or a duration such as 1m30s.");
  }
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * UNITS[unit as keyof typeof UNITS], 0);
}

/** Flags that `linkerd check` passes on, with values, to its extensions. They have no effect here. */
function extensionFlags(): readonly Option[] {
  const unused = ["--verbose [boolean]", "--proxy [boolean]", "--namespace <name>"].map((flags) => new Option(flags));
  return [...clusterFlags().filter(({ long }) => long !== "--verbose"), ...unused.map((option) => option.hideHelp())];
}

/** The result of one check; with --pre, also what the commands to install need. */
type Look = Pick<Preparation, "findings"> & { readonly preparation?: Preparation };

/** First makes a request that needs no permissions, so that an unreachable cluster is reported once. */
async function lookAt(kubectl: Kubectl, options: Options, isOptional: boolean): Promise<Look> {
  const { cniNamespace: namespace, pre } = options;
  const answers = await apiFinding(kubectl);
  if (answers.result === "error") return { findings: [answers] };
  if (pre !== true) return { findings: [answers, ...inspect(await takeSnapshot(kubectl, namespace), isOptional)] };
  const preparation = prepare(await readBefore(kubectl, namespace));
  return { findings: [answers, ...preparation.findings], preparation };
}

const LOOK_EVERY_MS = 2_000;

/** Checks until nothing fails or the time is over. */
async function settled(look: () => Promise<Look>, wait: number, io: Io): Promise<Look> {
  const begin = io.now();
  for (;;) {
    const seen = await look();
    const left = wait - (io.now() - begin);
    if (succeeded(seen.findings) || left <= 0) return seen;
    await io.sleep(Math.min(LOOK_EVERY_MS, left));
  }
}

async function run(options: Options, io: Io, isOptional: boolean): Promise<void> {
  const kubectl = new Kubectl(io, options);
  const { findings, preparation } = await settled(() => lookAt(kubectl, options, isOptional), options.wait, io);
  if (options.output === "json") io.out(reportJson(findings, preparation?.values));
  else {
    io.out(reportText(findings, pc.createColors(io.colour)));
    if (preparation !== undefined && succeeded(findings)) {
      io.out(installText(preparation, options.cniNamespace));
    }
  }
  if (!succeeded(findings)) throw new Unsuccessful();
}

/**
 * Adds `l5d-cni check`.
 * @param isOptional whether `linkerd check` runs it: a cluster without the plugin then gets a warning, not an error
 */
export function addCheck(program: Command, io: Io, isOptional: boolean): void {
  const command = program
    .command("check")
    .description("Find problems of the plugin in a cluster, and say how to fix them")
    .option("--pre", "Look at the cluster before an installation, and print the values to install with")
    .option("--cni-namespace <name>", "Namespace of the plugin", CNI_NAME)
    .addOption(
      new Option("--wait <duration>", "How long to wait for failed checks to pass, in seconds or as 1m30s")
        .argParser(duration)
        .default(0, "0s"),
    )
    .addOption(new Option("-o, --output <format>", "Format").choices(["table", "json"]).default("table"));
  for (const flag of isOptional ? extensionFlags() : clusterFlags()) command.addOption(flag);
  command.action((options: Options) => run(options, io, isOptional));
}
