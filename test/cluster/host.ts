import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { CGROUP, hierarchies } from "./cgroups";
import { SYSCTLS } from "./mounts";
import { paths } from "./paths";

const execute = promisify(execFile);

/** Directories of the host that a node of Kubernetes writes in, and how deep to look. */
const DIRECTORIES: Readonly<Record<string, number>> = {
  "/etc": 1,
  "/etc/cni": 3,
  "/etc/kubernetes": 2,
  "/opt": 3,
  "/run": 1,
  "/run/containerd": 3,
  "/var/lib": 1,
  "/var/lib/cni": 3,
  "/var/lib/containerd": 2,
  "/var/lib/kubelet": 2,
  "/var/log": 1,
  "/var/log/pods": 1,
};

/** Things that a cluster could leave on its host. */
const TRACES: Readonly<Record<string, () => Promise<string[]>>> = {
  processes,
  mounts: async () => lines("cat", "/proc/self/mounts"),
  links: async () => (await lines("ip", "-oneline", "link")).map((line) => line.split(": ")[1] ?? ""),
  addresses: async () => (await lines("ip", "-oneline", "address")).map((line) => line.replace(/\s+valid_lft.*/, "")),
  routes: async () => lines("ip", "route"),
  tables: async () => lines("nft", "list", "tables"),
  cgroups: async () => hierarchies().then((all) => below(Object.fromEntries(all.map((path) => [path, 1])))),
  files: async () => below(DIRECTORIES),
  sysctls: async () =>
    Promise.all(
      [...Object.keys(SYSCTLS), "net/ipv4/ip_forward"].map(async (name) => {
        return `${name}=${(await readFile(join("/proc/sys", name), "utf8")).trim()}`;
      }),
    ),
};

/** Everything on the host of the kinds that a cluster could leave, by kind. */
export async function hostState(): Promise<Record<string, string[]>> {
  const kinds = Object.entries(TRACES).map(async ([kind, list]) => [kind, await list()] as const);
  return Object.fromEntries(await Promise.all(kinds));
}

/** What has appeared since, except for what other work on the host causes. */
export async function addedSince(before: Record<string, string[]>): Promise<string[]> {
  const after = Object.entries(await hostState());
  return after.flatMap(([kind, found]) => {
    const known = new Set(before[kind]);
    return found.filter((one) => !known.has(one)).map((one) => `${kind}: ${one}`);
  });
}

/** Processes that a cluster of this checkout has started, in whatever namespace. */
async function processes(): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const read = (pid: string, file: string) => readFile(join("/proc", pid, file), "utf8").catch(() => "");
  const found = pids.map(async (pid) => {
    const [command, environment, groups] = await Promise.all(
      ["cmdline", "environ", "cgroup"].map((file) => read(pid, file)),
    );
    const ours = `${command}${environment}`.includes(paths.state) || groups?.includes(`/${CGROUP}`);
    return ours ? [`${pid} ${command?.replaceAll("\0", " ")}`] : [];
  });
  return (await Promise.all(found)).flat();
}

async function lines(program: string, ...args: string[]): Promise<string[]> {
  return (await execute(program, args)).stdout.trim().split("\n");
}

/** Every path below some directories, each down to a depth. */
async function below(directories: Readonly<Record<string, number>>): Promise<string[]> {
  const listed = Object.entries(directories).map(async ([directory, depth]) => {
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
    const inner = entries.filter((entry) => entry.isDirectory() && depth > 1);
    const paths = entries.map(({ name }) => join(directory, name));
    return [
      ...paths,
      ...(await below(Object.fromEntries(inner.map(({ name }) => [join(directory, name), depth - 1])))),
    ];
  });
  return (await Promise.all(listed)).flat();
}
