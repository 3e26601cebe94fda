/** The node's own programs: where they are, and running them. */
export interface HostPrograms {
  /** Path of a program in the directories of PATH or the usual ones. */
  find(name: string): string | undefined;
  run(path: string, args: readonly string[], input: string): HostRun;
}

export interface HostRun {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Where distributions keep them, whatever little PATH a runtime has. */
const USUAL = ["/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/local/bin"];
const TIMEOUT_MS = 10_000;

/** The real ones. They run in the network namespace of the calling thread. */
export function hostPrograms(path: string | undefined): HostPrograms {
  const directories = [...(path ?? "").split(":").filter((each) => each.startsWith("/")), ...USUAL];
  return {
    find(name) {
      const { existsSync } = require("node:fs") as typeof import("node:fs");
      return directories.map((directory) => `${directory}/${name}`).find((candidate) => existsSync(candidate));
    },
    run(program, args, input) {
      const { spawnSync } = require("node:child_process") as typeof import("node:child_process");
      const env = { PATH: directories.join(":") };
      const options = { input, env, encoding: "utf8", timeout: TIMEOUT_MS, killSignal: "SIGKILL" } as const;
      const { status, stdout, stderr, error } = spawnSync(program, args, options);
      return { status, stdout: stdout ?? "", stderr: `${stderr ?? ""}${error?.message ?? ""}` };
    },
  };
}
