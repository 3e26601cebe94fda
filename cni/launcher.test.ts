import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LauncherArchitecture, launcher } from "./launcher";

const emulators = { x64: "qemu-x86_64", arm64: "qemu-aarch64" };

/** How to run a program of an architecture here; undefined where that is not possible. */
function runner(architecture: LauncherArchitecture): string[] | undefined {
  if (process.platform === "linux" && process.arch === architecture) return [];
  const emulator = emulators[architecture];
  return spawnSync(emulator, ["-version"]).status === 0 ? [emulator] : undefined;
}

describe.each(["x64", "arm64"] as const)("the launcher for %s", (architecture) => {
  const prefix = runner(architecture);
  const runs = prefix === undefined ? it.skip : it;
  const directory = mkdtempSync(join(tmpdir(), "launcher with spaces é "));
  afterAll(() => rmSync(directory, { recursive: true }));

  function start(loader: string) {
    const path = join(directory, "linkerd-cni");
    const bytes = launcher({ architecture, loader, libraries: "/a b", executable: "/c" });
    expect(bytes.length).toBeLessThan(1000);
    writeFileSync(path, bytes, { mode: 0o755 });
    const env = {
      CNI_COMMAND: "ADD",
      A: "",
      PATH: "/bin:/usr/bin",
      BUN_BE_BUN: "1",
      LD_LIBRARY_PATH: "/x",
      CNI_ARGS: "x",
    };
    const [command = path, ...args] = [...(prefix ?? []), path];
    return spawnSync(command, args, { encoding: "utf8", env });
  }

  runs("starts the loader with its arguments and with nothing but CNI's environment", () => {
    const loader = join(directory, "loader");
    writeFileSync(loader, '#!/bin/sh\nprintf "%s\\n" "$@"\nenv | grep -v ^PWD= | sort\n', { mode: 0o755 });
    const lines = start(loader).stdout.trim().split("\n");
    expect(lines.slice(0, 3)).toEqual(["--library-path", "/a b", "/c"]);
    expect(lines.filter((line) => /^[A-Z]/.test(line) && !/^(SHLVL|OLDPWD|_)=/.test(line))).toEqual([
      "CNI_ARGS=x",
      "CNI_COMMAND=ADD",
      "PATH=/bin:/usr/bin",
    ]);
  });

  runs("is a CNI error where the loader is missing", () => {
    const { stdout, status } = start("/none");
    expect(JSON.parse(stdout)).toMatchObject({ code: 5, msg: expect.stringContaining("/none") });
    expect(status).toBe(1);
  });
});
