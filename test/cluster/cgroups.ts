import { createHash } from "node:crypto";
import { mkdir, readdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { paths } from "./paths";

/** Below this group of each hierarchy stands everything that the kubelet makes: another checkout's has another name. */
export const CGROUP = `linkerd-cni-cluster-${createHash("sha256").update(paths.state).digest("hex").slice(0, 8)}`;
const MOUNT = "/sys/fs/cgroup";

/** The hierarchies of cgroup v1 (one a controller), or the one of v2. */
export async function hierarchies(): Promise<string[]> {
  const entries = await readdir(MOUNT, { withFileTypes: true });
  if (entries.some((entry) => entry.name === "cgroup.controllers")) return [MOUNT];
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(MOUNT, entry.name));
}

export async function makeCgroups(name = CGROUP): Promise<void> {
  for (const hierarchy of await hierarchies()) await mkdir(join(hierarchy, name), { recursive: true });
}

/** Removes the groups once all their processes have ended. */
export async function removeCgroups(name = CGROUP): Promise<void> {
  for (const hierarchy of await hierarchies()) await removeTree(join(hierarchy, name));
}

async function removeTree(directory: string): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => undefined);
  if (entries === undefined) return;
  for (const entry of entries) if (entry.isDirectory()) await removeTree(join(directory, entry.name));
  await removeGroup(directory, 1_200);
}

/** A group is busy until the kernel has buried its last process, which takes its time on a busy machine. */
async function removeGroup(directory: string, tries: number): Promise<void> {
  try {
    await rmdir(directory);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return;
    if (code !== "EBUSY" || tries === 0) throw error;
    await sleep(50);
    await removeGroup(directory, tries - 1);
  }
}
