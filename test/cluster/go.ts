import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { paths } from "./paths";

/** The environment in which `go` is the checkout's, if any, or else the machine's. */
export const goEnvironment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: [paths.go, process.env["PATH"] ?? ""].join(delimiter),
});

/** Why this machine's Go cannot build a cluster's programs, with the remedy. */
export function goProblems(): string[] {
  const asked = spawnSync("go", ["env", "GOVERSION", "GOTOOLCHAIN"], {
    cwd: "/",
    env: goEnvironment(),
    encoding: "utf8",
  });
  return judgeGo(needed(), asked.error === undefined ? asked.stdout : undefined);
}

/**
 * @param needed version that the modules ask for
 * @param found the output of `go env GOVERSION GOTOOLCHAIN`; undefined if there is no Go
 */
function judgeGo(needed: string, found: string | undefined): string[] {
  const remedy = ".ci/install-go fetches one into .cache";
  if (found === undefined) return [`Go ${needed} or later: apt-get install golang-go; where that is older, ${remedy}`];
  const [version = "", toolchain = ""] = found.replace(/^go/, "").split("\n");
  // Since 1.21 Go fetches the version that a module requires, unless disabled.
  const suffices = !older(version, needed) || (!older(version, "1.21") && toolchain.endsWith("auto"));
  return suffices ? [] : [`Go ${needed} or later, which ${version || "what is here"} is not: ${remedy}`];
}

/** The newest of the versions that the modules of this folder, and helm's, ask for. */
function needed(): string {
  const modules = [
    ...readdirSync(__dirname).map((name) => join(__dirname, name)),
    join(__dirname, "..", "tools", "helm"),
  ];
  const versions = modules.flatMap((module) => /^go (\S+)$/m.exec(readModule(module))?.[1] ?? []);
  return versions.reduce((newest, one) => (older(newest, one) ? one : newest), "0");
}

function readModule(directory: string): string {
  try {
    return readFileSync(join(directory, "go.mod"), "utf8");
  } catch {
    return "";
  }
}

function older(one: string, other: string): boolean {
  return one.localeCompare(other, "en", { numeric: true }) < 0;
}
