import { gzipSync } from "node:zlib";
import { type Command, InvalidArgumentError, Option } from "commander";
import { pack } from "tar-stream";
import type { Io } from "../io";
import { type ClusterOptions, clusterFlags, Kubectl } from "../kubectl";
import { type ReportFile, reportFiles } from "./contents";
import { gather } from "./gather";

interface Options extends ClusterOptions {
  readonly cniNamespace: string;
  readonly output?: string;
  readonly logs: number;
}

function count(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError("Write a whole number.");
  return Number(text);
}

/** Files in one folder, as .tar.gz. */
async function archived(files: readonly ReportFile[], folder: string, mtime: Date): Promise<Buffer> {
  const archive = pack();
  for (const { name, text } of files) archive.entry({ name: `${folder}/${name}`, mode: 0o644, mtime }, text);
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return gzipSync(Buffer.concat(chunks));
}

async function run(options: Options, io: Io): Promise<void> {
  const { cniNamespace: namespace, logs } = options;
  const date = io.date();
  const folder = `linkerd-cni-report-${date
    .toISOString()
    .replace(/\.\d+Z$/, "")
    .replace(/[-:]/g, "")
    .replace("T", "-")}`;
  const { output = `${folder}.tar.gz` } = options;
  const taken = () => new Error(`--output: ${output} already exists: choose another name`);
  if (output !== "-" && io.exists(output)) throw taken();
  const material = await gather(new Kubectl(io, options), { namespace, logs });
  const files = reportFiles(material);
  const content = await archived(files, folder, date);
  try {
    io.writeFile(output, content);
  } catch (error) {
    if ((error as { code?: unknown }).code === "EEXIST") throw taken();
    throw error;
  }
  const say = output === "-" ? io.err : io.out;
  say(files[0]?.text ?? "");
  const { length: unread } = material.unread;
  if (unread > 0) say(`${unread} ${unread === 1 ? "thing" : "things"} could not be read: see unread.txt.\n`);
  if (output !== "-") say(`Written to ${output} (${Math.ceil(content.length / 1024)} KiB).\n`);
}

/** Adds `l5d-cni report`. */
export function addReport(program: Command, io: Io): void {
  const command = program
    .command("report")
    .description("Write an archive for a bug report: versions, configuration, logs, Events and what check finds")
    .option("--cni-namespace <name>", "Namespace of the plugin", "linkerd-cni")
    .option("-o, --output <file>", "File to write, - for standard output (default: linkerd-cni-report-TIME.tar.gz)")
    .addOption(
      new Option("--logs <number>", "Number of installer pods whose logs are read, those that are not ready first")
        .argParser(count)
        .default(20),
    );
  for (const flag of clusterFlags()) command.addOption(flag);
  command.action((options: Options) => run(options, io));
}
