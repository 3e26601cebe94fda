import { accessSync, constants, readFileSync, realpathSync, statfsSync, statSync } from "node:fs";
import { mountOf, readMountinfo } from "../state/mounts";
import type { Paths } from "../state/paths";
import type { HostFacts } from "./preflight";

type Directory = HostFacts["directories"][number];

function readIfAny(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").replace(/\0/g, "").trim();
  } catch {
    return undefined;
  }
}

function stateOf(path: string): Directory["state"] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return "missing";
  if (!stat.isDirectory()) return "not a directory";
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return "writable";
  } catch {
    return "not writable";
  }
}

function freeBytes(path: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}

function directory(path: string, mountinfo: string, holdsPlugin: boolean): Directory {
  const state = stateOf(path);
  const options = state === "missing" ? [] : (mountOf(mountinfo, realpathSync(path))?.options ?? []);
  return { path, state, mountOptions: options, holdsPlugin, freeBytes: freeBytes(path) };
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** Collects the facts that are visible from inside the container. */
export function hostFacts(paths: Paths, runtime: string | undefined): HostFacts {
  const mountinfo = readMountinfo();
  const enforce = readIfAny("/sys/fs/selinux/enforce");
  const label = readIfAny("/proc/self/attr/current") ?? "";
  return {
    directories: [directory(paths.binDir, mountinfo, true), directory(paths.netDir, mountinfo, false)],
    pluginBytes: sizeOf(paths.image),
    selinux: enforce === undefined ? undefined : { enforcing: enforce === "1", label },
    runtime,
  };
}
