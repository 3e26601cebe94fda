import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Machine } from "./machine";
import { DISK, onDisk, paths } from "./paths";

/** Directories that the machine may write in without the host seeing it. */
const OVERLAID = ["/etc", "/opt", "/var"] as const;

/** Settings of the whole host that the kubelet changes unless they are right; inside the machine they are. */
const SYSCTLS: Readonly<Record<string, number>> = {
  "vm/overcommit_memory": 1,
  "vm/panic_on_oom": 0,
  "kernel/panic": 10,
  "kernel/panic_on_oops": 1,
  "kernel/keys/root_maxkeys": 1_000_000,
  "kernel/keys/root_maxbytes": 25_000_000,
};

/** Gives the machine a file system that looks like the host's, with its own node directories at the usual places. */
export async function mountDisk(machine: Machine): Promise<void> {
  const layers = join(paths.state, "layers");
  const sysctls = join(paths.state, "sysctl");
  for (const directory of [layers, sysctls, ...DISK.map(onDisk)]) await mkdir(directory, { recursive: true });
  for (const [name, value] of Object.entries(SYSCTLS)) await writeFile(join(sysctls, fileName(name)), `${value}\n`);
  const commands: (readonly string[])[] = [
    // Volumes that are mounted later have to reach the containers.
    ["mount", "--make-rshared", "/"],
    ["mount", "-t", "tmpfs", "tmpfs", layers],
    ...OVERLAID.flatMap((directory) => overlay(directory, join(layers, fileName(directory)))),
    ["mkdir", "-p", ...DISK],
    ...DISK.map((directory) => ["mount", "--bind", onDisk(directory), directory]),
    ...Object.keys(SYSCTLS).map((name) => ["mount", "--bind", join(sysctls, fileName(name)), `/proc/sys/${name}`]),
  ];
  for (const command of commands) await machine.run(command);
  await mountRun(machine);
}

/** Gives the machine an empty /run, as a start of a node does. */
export async function mountRun(machine: Machine): Promise<void> {
  await unmount(machine, /^\/run(\/|$)/);
  await machine.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"]);
  await machine.run(["mkdir", "-p", "/run/lock"]);
}

/** Unmounts everything in the machine whose path matches, the last mount first. */
export async function unmount(machine: Machine, form: RegExp): Promise<void> {
  const mounted = (await machine.run(["cat", "/proc/mounts"])).split("\n").map((line) => line.split(" ")[1] ?? "");
  const paths = mounted.filter((path) => form.test(path)).reverse();
  if (paths.length > 0) await machine.run(["umount", "--lazy", ...paths]);
}

/** Commands that lay a directory's own layer over it. @param layer directory on a file system that can be one, as tmpfs */
export function overlay(directory: string, layer: string): string[][] {
  const [upper, work] = [join(layer, "upper"), join(layer, "work")];
  const options = `lowerdir=${directory},upperdir=${upper},workdir=${work}`;
  return [
    ["mkdir", "-p", upper, work],
    ["mount", "-t", "overlay", "overlay", "-o", options, directory],
  ];
}

const fileName = (path: string) => path.replaceAll("/", "-");
