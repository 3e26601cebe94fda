import type { Command } from "commander";
import { Annotation, CNI_NAME } from "../cni/contract";
import { version } from "../constructs";
import { type DaemonSet, imageOf, NAME } from "./check/objects";
import { complain, type Io } from "./io";
import { type ClusterOptions, clusterFlags, Kubectl, KubectlError } from "./kubectl";

interface Options extends ClusterOptions {
  readonly cniNamespace: string;
  readonly client?: true;
  readonly short?: true;
}

/**
 * The tag of the installer's image. If that is not a version, as in a mirror, the version that the installation's
 * annotation names; without one, the tag or digest.
 */
function versionOf(set: DaemonSet): string | undefined {
  const [name, digest] = imageOf(set)?.split("@") ?? [];
  const [, tag] = /:([\w][\w.-]*)$/.exec(name ?? "") ?? [];
  if (tag !== undefined && /^\D*\d+\.\d+/.test(tag)) return tag;
  const [, created] = / (\S+)$/.exec(set.metadata.annotations?.[Annotation.createdBy] ?? "") ?? [];
  return created ?? tag ?? digest;
}

async function serverVersion(options: Options, io: Io): Promise<string> {
  const question = { kind: "daemonset", name: NAME, namespace: options.cniNamespace };
  try {
    const set = await new Kubectl(io, options).get<DaemonSet>(question);
    return (set === undefined ? undefined : versionOf(set)) ?? "unavailable";
  } catch (error) {
    if (!(error instanceof KubectlError)) throw error;
    complain(io, error.message);
    return "unavailable";
  }
}

/** Adds `l5d-cni version`, which prints what `linkerd version` prints. */
export function addVersion(program: Command, io: Io): void {
  const command = program
    .command("version")
    .description("Print the version of this command, and of the plugin in the cluster")
    .option("--client", "Print only the version of this command, and do not ask the cluster")
    .option("--short", "Print the numbers alone")
    .option("--cni-namespace <name>", "Namespace of the plugin", CNI_NAME);
  for (const flag of clusterFlags()) command.addOption(flag);
  command.action(async (options: Options) => {
    const label = (text: string) => (options.short === true ? "" : `${text} version: `);
    io.out(`${label("Client")}${version}\n`);
    if (options.client !== true) io.out(`${label("Server")}${await serverVersion(options, io)}\n`);
  });
}
