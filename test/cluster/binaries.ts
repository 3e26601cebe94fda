import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, copyFile, mkdir, readdir, readFile, rename, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { Progress } from "../../build/progress";
import { goEnvironment } from "./go";
import { paths } from "./paths";

const execute = promisify(execFile);

const KUBERNETES_VERSION = "v1.34.4";
/** An executable of another version, by `.ci/build-kubernetes`. */
const otherKubernetes = process.env["KUBERNETES_PEER"];

/** An executable, or a directory of several, that is built from a Go module of this project. */
interface GoProgram {
  /** Directory of the module. */
  readonly module: string;
  readonly packages: readonly string[];
  readonly linkerFlags: string;
  /** What a build does and how long it takes, for the user who waits. */
  readonly about: string;
}

const version = (name: string, value: string) => `-X k8s.io/component-base/version.${name}=${value}`;
const [, major = "", minor = ""] = /^v(\d+)\.(\d+)/.exec(KUBERNETES_VERSION) ?? [];

const KUBERNETES: GoProgram = {
  module: join(__dirname, "kubernetes"),
  packages: ["."],
  // Helm compares a chart's kubeVersion with what the API server says of itself.
  linkerFlags: [version("gitVersion", KUBERNETES_VERSION), version("gitMajor", major), version("gitMinor", minor)].join(
    " ",
  ),
  about: `Kubernetes ${KUBERNETES_VERSION} (once, 5 to 10 minutes)`,
};
const PROGRAMS: GoProgram = {
  module: join(__dirname, "programs"),
  packages: ["."],
  linkerFlags: "",
  about: "the containers' programs",
};
const HELM: GoProgram = {
  module: join(__dirname, "..", "tools", "helm"),
  packages: ["helm.sh/helm/v3/cmd/helm"],
  linkerFlags: "",
  about: "helm (once, 2 to 4 minutes)",
};

const containerdModule = (directory: string, version: string): GoProgram => ({
  module: join(__dirname, directory),
  packages: [
    ...["containerd", "containerd-shim-runc-v2", "ctr"].map(
      (name) => `github.com/containerd/containerd/v2/cmd/${name}`,
    ),
    ...["main/bridge", "ipam/host-local", "main/loopback", "meta/portmap"].map(
      (path) => `github.com/containernetworking/plugins/plugins/${path}`,
    ),
  ],
  linkerFlags: "",
  about: `containerd ${version} and the CNI plugins (once, 1 to 3 minutes)`,
});

/** A containerd that is built here. 2.3 reports a sandbox to NRI plugins by a separate call, 2.2 by a general one. */
const CONTAINERD = {
  "2": containerdModule("containerd", "2.2"),
  "2.3": containerdModule("containerd-2.3", "2.3"),
} as const;
export type BuiltContainerd = keyof typeof CONTAINERD;
export const BUILT_CONTAINERDS = Object.keys(CONTAINERD) as BuiltContainerd[];

/** Multus: as one program that the runtime calls, as a daemon with the shim that does so, and what its auxiliary chain begins with. */
const MULTUS: GoProgram = {
  module: join(__dirname, "multus"),
  packages: ["multus", "multus-daemon", "multus-shim", "passthru-cni"].map(
    (name) => `gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/${name}`,
  ),
  linkerFlags: "",
  about: "Multus (once, 1 to 3 minutes)",
};

const COREDNS: GoProgram = {
  module: join(__dirname, "coredns"),
  packages: ["."],
  linkerFlags: "",
  about: "CoreDNS (once, 1 to 2 minutes)",
};

/** Names under which the Kubernetes executable is called. */
const CALLED = [
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kube-proxy",
  "kubelet",
  "kubectl",
] as const;

/** The static executable that pauses, stands in for a proxy, serves and dials. */
export const programs = join(paths.binaries, "programs");

/** Builds a containerd and the CNI plugins. @returns the directory that holds them */
export async function buildContainerd(
  version: BuiltContainerd,
  progress: Progress,
  signal: AbortSignal,
): Promise<string> {
  await mkdir(paths.binaries, { recursive: true });
  return build(CONTAINERD[version], join(paths.binaries, `containerd-${version}`), progress, signal);
}

/** Builds Multus. @returns the directory that holds its executables */
export async function buildMultus(progress: Progress): Promise<string> {
  await mkdir(paths.binaries, { recursive: true });
  return build(MULTUS, join(paths.binaries, "multus"), progress);
}

/** Builds CoreDNS. @returns its executable */
export async function buildCoreDns(progress: Progress): Promise<string> {
  return build(COREDNS, join(paths.binaries, "coredns"), progress);
}

/** Builds what is not yet in the cache. */
export async function buildBinaries(progress: Progress, signal: AbortSignal): Promise<void> {
  await mkdir(paths.binaries, { recursive: true });
  const kubernetes = join(paths.binaries, "kubernetes");
  if (otherKubernetes === undefined) await build(KUBERNETES, kubernetes, progress, signal);
  else await link(otherKubernetes, kubernetes);
  await build(PROGRAMS, programs, progress, signal);
  if (!existsSync(paths.helm)) {
    await copy(await build(HELM, join(paths.binaries, "helm"), progress, signal), paths.helm);
  }
  for (const name of CALLED) await link("kubernetes", join(paths.binaries, name));
}

/** Builds everything that a cluster, or a suite that runs in one, may need and that is not yet in the cache. */
export async function buildEverything(progress: Progress, signal: AbortSignal): Promise<void> {
  await buildBinaries(progress, signal);
  for (const version of BUILT_CONTAINERDS) await buildContainerd(version, progress, signal);
  await buildMultus(progress);
}

/** Builds a program unless its sources are those that the cached executable was made from. */
async function build(
  program: GoProgram,
  executable: string,
  progress: Progress,
  signal?: AbortSignal,
): Promise<string> {
  const cached = `${executable}-${await digest(program)}`;
  if (!existsSync(cached)) {
    const part = `${cached}.part`;
    try {
      await progress.step(program.about, () => compile(program, part, progress, signal));
      await rename(part, cached);
    } finally {
      await rm(part, { recursive: true, force: true });
    }
  }
  await link(cached, executable);
  return cached;
}

async function link(target: string, path: string): Promise<void> {
  await rm(path, { force: true });
  await symlink(target, path);
}

async function compile(
  program: GoProgram,
  executable: string,
  progress: Progress,
  signal?: AbortSignal,
): Promise<void> {
  const output = program.packages.length > 1 ? `${executable}/` : executable;
  const flags = ["-trimpath", "-buildvcs=false", "-ldflags", `-s -w ${program.linkerFlags}`];
  const go = spawn("go", ["build", "-v", ...flags, "-o", output, ...program.packages], {
    cwd: program.module,
    env: { ...goEnvironment(), CGO_ENABLED: "0" },
    stdio: ["ignore", "ignore", "pipe"],
    signal,
    killSignal: "SIGINT",
  });
  let said = "";
  let compiled = 0;
  go.stderr.on("data", (chunk: Buffer) => {
    said += chunk;
    compiled += chunk.toString().split("\n").length - 1;
  });
  const report = setInterval(() => progress.note(`${compiled} packages compiled`), 20_000);
  const code = await new Promise((resolve, reject) => go.once("error", reject).once("close", resolve)).finally(() =>
    clearInterval(report),
  );
  if (code !== 0) throw new Error(`go build in ${program.module} failed:\n${said.slice(-4000)}`);
}

/** What a program is built from: its module's files, the flags and the compiler. */
async function digest(program: GoProgram): Promise<string> {
  const hash = createHash("sha256");
  const { stdout: compiler } = await execute("go", ["env", "GOVERSION"], { env: goEnvironment() });
  hash.update(compiler).update(JSON.stringify(program.linkerFlags));
  for (const name of (await readdir(program.module)).sort()) {
    hash.update(name).update(await readFile(join(program.module, name)));
  }
  return hash.digest("hex").slice(0, 12);
}

async function copy(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  await copyFile(from, `${to}.part`);
  await chmod(`${to}.part`, 0o755);
  await rename(`${to}.part`, to);
}
