/** Common parts of GitOps tools: a Git repository, and installations that they keep in its state. */
import { execFile } from "node:child_process";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import { outputs, root } from "../../build/paths";
import { until } from "../support/until";
import { paths } from "./paths";
import type { Kubectl } from "./pods";

const execute = promisify(execFile);

const AUTHOR = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"];

/** A Git repository with the files that a release of the project has for GitOps, and the tests' commits on top. */
export class GitRepository {
  readonly path = join(paths.state, "git");
  readonly url = `file://${this.path}`;

  static async create(): Promise<GitRepository> {
    const repository = new GitRepository();
    await mkdir(repository.path);
    await repository.git("init", "--quiet", "--initial-branch=main");
    await repository.commit("release", async () => {
      await cp(outputs.charts, join(repository.path, CHARTS), { recursive: true });
      await cp(outputs.manifests, join(repository.path, MANIFESTS), { recursive: true });
    });
    return repository;
  }

  async git(...args: string[]): Promise<string> {
    return (await execute("git", ["-C", this.path, ...AUTHOR, ...args])).stdout.trim();
  }

  async commit(message: string, change: () => Promise<unknown>): Promise<void> {
    await change();
    await this.git("add", "--all");
    await this.git("commit", "--quiet", `--message=${message}`);
  }

  /** Takes the last commit back, by another one. */
  async revert(): Promise<void> {
    await this.git("revert", "--no-edit", "HEAD");
  }

  head(): Promise<string> {
    return this.git("rev-parse", "HEAD");
  }

  /** Replaces the matches of a pattern in a file. @throws if there are none */
  async replace(file: string, pattern: RegExp, by: string): Promise<void> {
    const path = join(this.path, file);
    const text = await readFile(path, "utf8");
    if (!pattern.test(text)) throw new Error(`${file} has nothing like ${pattern}`);
    await writeFile(path, text.replace(pattern, by));
  }
}

const CHARTS = "dist/charts";
export const MANIFESTS = "dist/manifests";

/** An installation by a tool. */
export interface Installation {
  /** Its name in the tool, and that of the release. */
  readonly name: string;
  readonly namespace: string;
  /** Directory of the chart in the Git repository. */
  readonly path: string;
}

export const LINKERD_CNI: Installation = {
  name: "linkerd-cni",
  namespace: "linkerd-cni",
  path: `${CHARTS}/linkerd2-cni`,
};
export const LINKERD_MULTUS: Installation = {
  name: "linkerd-multus",
  namespace: "linkerd-multus",
  path: `${CHARTS}/linkerd-multus`,
};

/** A GitOps tool whose controllers run in the cluster. */
export interface GitOps {
  start(): Promise<void>;
  stop(): Promise<void>;
  install(what: Installation): Promise<void>;
  /** Waits until the newest commit, and the values, are installed and the tool counts it as healthy. */
  settled(what: Installation): Promise<void>;
  /** Has the tool compare the cluster with Git once more, and waits until it has done so. */
  reconcile(what: Installation): Promise<void>;
  /** Each time so far that the tool found a difference between the cluster and its installation. */
  corrections(what: Installation): Promise<readonly string[]>;
  /** Deletes the tool's object, and with it the installation. */
  uninstall(what: Installation): Promise<void>;
}

/** Gives the API server the definitions of kinds that are in some files, and waits until it serves them. */
export async function define(kubectl: Kubectl, files: readonly string[]): Promise<void> {
  const named = files.map((file) => `--filename=${file}`);
  await kubectl.run("apply", "--server-side", ...named);
  // It fails on a definition that has no conditions yet.
  const served = kubectl.run.bind(kubectl, "wait", "--for=condition=Established", "--timeout=180s", ...named);
  await until("the kinds to be served", () =>
    served().then(
      () => true,
      () => false,
    ),
  );
}

/** A tool that installs charts. */
export interface ChartTool extends GitOps {
  /** Changes the values that its object has for a chart. */
  setValues(what: Installation, values: Values): Promise<void>;
}

export type Values = Readonly<Record<string, unknown>>;

/** An example's object, which tests change in part. */
export interface Example {
  readonly kind: string;
  metadata: { name: string; namespace?: string };
  // biome-ignore lint/suspicious/noExplicitAny: each kind has its own, and a test changes what it knows to be there
  spec: any;
}

/** The objects of a file in examples/. */
export async function example(name: string): Promise<Example[]> {
  const text = await readFile(join(root, "examples", name), "utf8");
  return parseAllDocuments(text).map((document) => document.toJS() as Example);
}
