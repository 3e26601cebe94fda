import { accessSync, constants, readFileSync, realpathSync, statfsSync, statSync } from "node:fs";
import { mountOf, readMountinfo } from "../state/mounts";
import type { Paths } from "../state/paths";

/** Facts about the node. Absent means unknown. */
export interface HostFacts {
  readonly directories: readonly {
    readonly path: string;
    readonly state: "writable" | "missing" | "not a directory" | "not writable";
    /** Options of its mount. */
    readonly mountOptions: readonly string[];
    readonly holdsPlugin: boolean;
    readonly freeBytes?: number | undefined;
  }[];
  readonly pluginBytes: number;
  readonly selinux?: { readonly enforcing: boolean; readonly label: string } | undefined;
}

/** One line for the log. */
interface Advice {
  readonly level: "warn" | "error";
  readonly message: string;
}

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
export function hostFacts(paths: Paths): HostFacts {
  const mountinfo = readMountinfo();
  const enforce = readIfAny("/sys/fs/selinux/enforce");
  const label = readIfAny("/proc/self/attr/current") ?? "";
  return {
    directories: [directory(paths.binDir, mountinfo, true), directory(paths.netDir, mountinfo, false)],
    pluginBytes: sizeOf(paths.image),
    selinux: enforce === undefined ? undefined : { enforcing: enforce === "1", label },
  };
}

const error = (message: string): Advice => ({ level: "error", message });
const warn = (message: string): Advice => ({ level: "warn", message });

function ofMount({ path, holdsPlugin, mountOptions }: Directory): readonly Advice[] {
  const readOnly = mountOptions.includes("ro") ? [error(`${path} is mounted read-only: mount it writable`)] : [];
  const noExec =
    holdsPlugin && mountOptions.includes("noexec")
      ? [
          warn(
            `${path} is mounted noexec in this container: the installer runs VERSION on the image's own copy of the plugin; if the node mounts it noexec too, no pod can start: set destCNIBinDir to a directory that allows execution`,
          ),
        ]
      : [];
  return [...readOnly, ...noExec];
}

function ofDirectory(directory: Directory, pluginBytes: number): readonly Advice[] {
  const { path, state, holdsPlugin, freeBytes, mountOptions } = directory;
  const remedy = holdsPlugin ? "destCNIBinDir" : "destCNINetDir";
  if (state === "missing" || state === "not a directory") {
    return [error(`${path} is ${state}: set ${remedy} to the node's directory`)];
  }
  if (state === "not writable" && !mountOptions.includes("ro")) {
    return [error(`${path} is not writable: let uid 0 write there by the capability DAC_OVERRIDE, or privileged`)];
  }
  const short = holdsPlugin && freeBytes !== undefined && freeBytes < pluginBytes;
  const space = short
    ? [error(`${path} has ${freeBytes} bytes left, and the plugin needs ${pluginBytes}: free some space`)]
    : [];
  return [...ofMount(directory), ...space];
}

function ofSelinux(selinux: HostFacts["selinux"]): readonly Advice[] {
  if (selinux?.enforcing !== true || !selinux.label.includes(":container_t:")) return [];
  return [
    warn(
      `SELinux is enforcing and confines this container (${selinux.label}): set privileged, or seLinuxOptions type spc_t`,
    ),
  ];
}

/** The problems of the node, one line each with the remedy. */
export function preflight(facts: HostFacts): readonly Advice[] {
  return [
    ...facts.directories.flatMap((directory) => ofDirectory(directory, facts.pluginBytes)),
    ...ofSelinux(facts.selinux),
  ];
}
