import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { parseAllDocuments } from "yaml";
import { paths } from "../cluster/paths";
import { suite } from "../support/requirements";

export const root = join(__dirname, "..", "..");
export const chart = join(root, "dist", "charts", "linkerd2-cni");

/** A program: from the environment, in .cache/bin, or on PATH. */
export function findProgram(name: string, told: string | undefined): string | undefined {
  const folders = [join(root, ".cache", "bin"), ...(process.env["PATH"] ?? "").split(delimiter)];
  const candidates = [told ?? "", ...folders.map((folder) => join(folder, name))];
  return candidates.find((path) => path !== "" && existsSync(path));
}

/** The real helm, if installed. */
export const helm = findProgram("helm", process.env["HELM"]);
const helmMissing = helm === undefined ? "helm: set HELM or put it on PATH" : undefined;

/** Suites that run helm run if it is installed. */
export const helmSuite = (name: string, body: () => void): void => suite(name, helmMissing, body);

/** The test cluster's kubectl, whose kustomize is of its version: those of distributions are old. */
const kubectl = join(paths.binaries, "kubectl");
const kustomizeMissing = existsSync(kubectl) ? undefined : "kubectl: npm run cluster -- build";

/** Suites that render with kustomize run if it is installed. */
export const kustomizeSuite = (name: string, body: () => void): void => suite(name, kustomizeMissing, body);

/** The objects that kustomize makes of a directory. */
export const kustomized = (directory: string): readonly Rendered[] =>
  documents(execFileSync(kubectl, ["kustomize", directory], { encoding: "utf8" }));

/** The real command line of cdk8s, if installed. */
export const cdk8s = findProgram("cdk8s", process.env["CDK8S"]);
export const cdk8sMissing = cdk8s === undefined ? " (no cdk8s: set CDK8S or put it on PATH)" : "";

export interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly [key: string]: unknown;
}

/** A Kubernetes that every chart is for: a helm that is built from source claims to have an older one. */
const KUBERNETES = ["--kube-version", "v1.34.0"];

const forKubernetes = (args: readonly string[]): readonly string[] =>
  ["template", "lint"].includes(args[0] ?? "") && !args.includes("--kube-version") ? [...args, ...KUBERNETES] : args;

/** Runs helm and returns its output. @throws an Error with its message */
export function run(...args: readonly string[]): string {
  return execFileSync(helm ?? "", forKubernetes(args), {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    maxBuffer: 1 << 28,
  });
}

/** Helm's message when it refuses. */
export function refusal(...args: readonly string[]): string {
  const { status, stderr } = spawnSync(helm ?? "", forKubernetes(args), { encoding: "utf8" });
  if (status === 0) throw new Error(`helm ${args.join(" ")} succeeded`);
  return stderr;
}

/** Objects by kind and name, since helm and cdk8s put them in different orders. */
export const byName = (manifests: readonly Rendered[]) =>
  Object.fromEntries(manifests.map((manifest) => [`${manifest.kind}/${manifest.metadata.name}`, manifest]));

export const documents = (text: string): readonly Rendered[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Rendered | null)
    .filter((item) => item !== null);

const release = ["linkerd-cni", chart, "--namespace", "linkerd-cni"];

/** The objects that helm renders with some flags. */
export const template = (...flags: readonly string[]): readonly Rendered[] =>
  documents(run("template", ...release, ...flags));

export const templateRefusal = (...flags: readonly string[]): string => refusal("template", ...release, ...flags);

/** Calls with the path of a file that holds some values. */
export function withValues<T>(values: unknown, use: (path: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), "values-"));
  try {
    const path = join(folder, "values.json");
    writeFileSync(path, JSON.stringify(values));
    return use(path);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
