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
  /** `containerd://1.7.13` */
  readonly runtime?: string | undefined;
}

/** One line for the log. */
interface Advice {
  readonly level: "info" | "warn" | "error";
  readonly message: string;
}

type Directory = HostFacts["directories"][number];

const PASSES_ANNOTATIONS: Readonly<Record<string, readonly [number, number]>> = {
  containerd: [1, 5],
  "cri-o": [1, 29],
};

const error = (message: string): Advice => ({ level: "error", message });
const warn = (message: string): Advice => ({ level: "warn", message });
const info = (message: string): Advice => ({ level: "info", message });

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

/** Whether a runtime passes the pod's annotations to the plugin; undefined if its version cannot be read. */
function passesAnnotations(runtime: string): boolean | undefined {
  const match = /^([a-z-]+):\/\/v?(\d+)\.(\d+)/.exec(runtime);
  if (match === null) return undefined;
  const needs = PASSES_ANNOTATIONS[match[1] ?? ""];
  if (needs === undefined) return false;
  const [major, minor] = [Number(match[2]), Number(match[3])];
  return major > needs[0] || (major === needs[0] && minor >= needs[1]);
}

function ofRuntime(runtime: string | undefined): readonly Advice[] {
  if (runtime === undefined) return [];
  const passes = passesAnnotations(runtime);
  if (passes === true)
    return [info(`container runtime ${runtime} passes pod annotations: unmeshed pods need no API request`)];
  return [info(`container runtime ${runtime} does not pass pod annotations: each pod's start asks the API server`)];
}

/** The problems of the node, one line each with the remedy. */
export function preflight(facts: HostFacts): readonly Advice[] {
  return [
    ...facts.directories.flatMap((directory) => ofDirectory(directory, facts.pluginBytes)),
    ...ofSelinux(facts.selinux),
    ...ofRuntime(facts.runtime),
  ];
}

/** CRI-O calls the plugin for a pod's DEL with the configuration of its ADD, even after an uninstall. */
export function isCrio(runtime: string | undefined): boolean {
  return runtime?.startsWith("cri-o://") === true;
}
