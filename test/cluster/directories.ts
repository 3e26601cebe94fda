import { readFile, writeFile } from "node:fs/promises";
import { startDaemon } from "./cluster";
import type { Machine } from "./machine";
import { CONTAINERD_CONFIG, containerd } from "./runtimes";

/** Restarts the container runtime with other CNI directories, and moves the files of the usual ones there. */
export async function moveCniDirectories(machine: Machine, bin: string, conf: string): Promise<void> {
  await machine.endDaemon(containerd.name);
  let config = await readFile(CONTAINERD_CONFIG, "utf8");
  for (const [key, to] of [
    ["bin_dir", bin],
    ["conf_dir", conf],
  ] as const) {
    const [line = "", from = ""] = new RegExp(`${key} = "(.*)"`).exec(config) ?? [];
    await machine.run(["sh", "-e", "-c", 'mkdir -p "$1"; mv "$0"/* "$1"', from, to]);
    config = config.replace(line, `${key} = "${to}"`);
  }
  await writeFile(CONTAINERD_CONFIG, config);
  await startDaemon(machine, containerd);
}

/** Every path below a directory of the machine: kind, mode, and a link's target or a file's digest. */
export function listing(machine: Machine, directory: string): Promise<string> {
  const script = 'cd "$0"; find . -printf "%M %p %l\\n" | sort; find . -type f | sort | xargs -d "\\n" -r sha256sum';
  return machine.run(["sh", "-e", "-c", script, directory]);
}
