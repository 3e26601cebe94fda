import { Option } from "commander";
import { reasonOf } from "../cni/errors";
import type { Ended, Io } from "./io";

/** The cluster and the user: flags that kubectl also has. */
export interface ClusterOptions {
  readonly context?: string;
  readonly kubeconfig?: string;
  readonly as?: string;
  readonly asGroup?: readonly string[];
}

/** Groups, one at a time, or as linkerd passes them to its extensions: `[a,b]`. */
const groups = (value: string, before: readonly string[] | undefined): readonly string[] => {
  const [, list] = /^\[(.*)\]$/.exec(value) ?? [];
  return [...(before ?? []), ...(list === undefined ? [value] : list.split(",").filter(Boolean))];
};

/** For a repeatable option. */
export const collect = (value: string, before: readonly string[] | undefined): readonly string[] => [
  ...(before ?? []),
  value,
];

function clusterOptions(): readonly Option[] {
  return [
    new Option("--context <name>", "Context of the kubeconfig, passed on to kubectl"),
    new Option("--kubeconfig <file>", "Kubeconfig, passed on to kubectl"),
    new Option("--as <user>", "User to act as, passed on to kubectl"),
    new Option("--as-group <group>", "Group to act as, passed on to kubectl; may be repeated").argParser(groups),
  ];
}

/** linkerd's global flags, which have no effect here: command lines written for linkerd's command keep working. */
function ignoredOptions(): readonly Option[] {
  return [
    new Option("-L, --linkerd-namespace <name>"),
    new Option("--api-addr <address>"),
    new Option("--verbose"),
  ].map((option) => option.hideHelp());
}

/** @returns the flags of {@link ClusterOptions} for a command that asks the cluster, and linkerd's other global flags */
export const clusterFlags = (): readonly Option[] => [...clusterOptions(), ...ignoredOptions()];

/** @returns the same flags for a command that never asks the cluster: accepted, without effect */
export const unusedClusterFlags = (): readonly Option[] => clusterFlags().map((option) => option.hideHelp());

/** kubectl could not be run, or failed. */
export class KubectlError extends Error {
  override readonly name = "KubectlError";

  /** Whether the API server refused this to the user. */
  get isForbidden(): boolean {
    return this.message.includes("(Forbidden)");
  }
}

/** The objects to read. */
export interface Question {
  /** For instance `pod` or `clusterroles.rbac.authorization.k8s.io`. */
  readonly kind: string;
  /** Name of one object; absent: all objects. */
  readonly name?: string;
  /** Absent: kubectl's context decides. */
  readonly namespace?: string;
  readonly everywhere?: boolean;
  readonly selector?: string;
  readonly fieldSelector?: string;
  /** Include managedFields. */
  readonly showManagedFields?: boolean;
}

function words({
  kind,
  name,
  namespace,
  everywhere,
  selector,
  fieldSelector,
  showManagedFields,
}: Question): readonly string[] {
  return [
    kind,
    ...(name === undefined ? [] : [name]),
    ...(namespace === undefined ? [] : [`--namespace=${namespace}`]),
    ...(everywhere === true ? ["--all-namespaces"] : []),
    ...(selector === undefined ? [] : [`--selector=${selector}`]),
    ...(fieldSelector === undefined ? [] : [`--field-selector=${fieldSelector}`]),
    ...(showManagedFields === true ? ["--show-managed-fields"] : []),
  ];
}

/** Long enough for a slow server or a node's log, short enough for a server that never answers. */
const REQUEST_TIMEOUT = "--request-timeout=20s";

/** Reads a cluster by the user's kubectl, which supports every way of logging in. */
export class Kubectl {
  private readonly flags: readonly string[];

  constructor(
    private readonly io: Pick<Io, "run">,
    { context, kubeconfig, as, asGroup = [] }: ClusterOptions,
  ) {
    this.flags = [
      ...(context === undefined ? [] : [`--context=${context}`]),
      ...(kubeconfig === undefined ? [] : [`--kubeconfig=${kubeconfig}`]),
      ...(as === undefined ? [] : [`--as=${as}`]),
      ...asGroup.map((group) => `--as-group=${group}`),
    ];
  }

  /** @throws a KubectlError with kubectl's message */
  async run(...args: readonly string[]): Promise<string> {
    return this.output(await this.ask(...args), args[0] ?? "");
  }

  private ask(...args: readonly string[]): Promise<Ended> {
    return this.start([...this.flags, REQUEST_TIMEOUT, ...args]);
  }

  private output({ code, out, err }: Ended, verb: string): string {
    if (code === 0) return printable(out);
    throw new KubectlError(`kubectl ${verb}: ${lastWords(printable(err)) || `ended with status ${code}`}`);
  }

  /**
   * The cluster's kinds, as `NAME.GROUP`. If one API does not answer, such as that of a broken metrics-server, kubectl
   * lists the others and ends with a status: these are returned.
   * @throws a KubectlError
   */
  async kinds(): Promise<readonly string[]> {
    const answer = await this.ask("api-resources", "--output=name");
    return (answer.out.trim() === "" ? this.output(answer, "api-resources") : answer.out).split("\n");
  }

  /** One object; undefined if it does not exist. @throws a KubectlError */
  async get<T>(question: Question & { readonly name: string }): Promise<T | undefined> {
    const text = await this.run("get", ...words(question), "--output=json", "--ignore-not-found");
    return text.trim() === "" ? undefined : this.read<T>(text, question);
  }

  /** @throws a KubectlError */
  async list<T>(question: Question): Promise<readonly T[]> {
    const text = await this.run("get", ...words(question), "--output=json");
    return this.read<{ items?: readonly T[] }>(text, question).items ?? [];
  }

  private read<T>(text: string, question: Question): T {
    try {
      return JSON.parse(text, (_, value) => (typeof value === "string" ? printable(value) : value)) as T;
    } catch {
      throw new KubectlError(`kubectl get ${words(question).join(" ")} did not print JSON`);
    }
  }

  private async start(args: readonly string[]) {
    try {
      return await this.io.run("kubectl", args);
    } catch (error) {
      const missing = (error as { code?: unknown }).code === "ENOENT";
      const reason = reasonOf(error);
      throw new KubectlError(missing ? "kubectl is not on PATH: install it" : `kubectl: ${reason}`);
    }
  }
}

/** A text without control characters: anyone who may write an Event could send them to the user's terminal. */
const printable = (text: string): string => text.replace(/[^\P{Cc}\n\t]/gu, "");

/** The end of kubectl's error output; client-go's log lines come before it, and begin with a letter and a date. */
function lastWords(text: string): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "" && !/^[EWI]\d{4} /.test(line));
  return [...new Set(lines)].join(" ");
}
