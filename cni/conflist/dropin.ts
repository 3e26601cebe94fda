/**
 * Drop-ins: from libcni 1.3 on, a runtime appends the plugins in `NAME/*.conf` to a list with the name NAME, in the order
 * of the files' names, unless the list says `loadOnlyInlinedPlugins`. It never appends any to a single plugin's file.
 */
import type { Config } from "./read";

/** The name of our file in such a folder: the last one, so that everything before it has its effect. */
export const DROPIN_FILE = "99-linkerd-cni.conf";

/** What libcni takes for the name of a network. */
const NETWORK_NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

/** The first version of each runtime that has libcni 1.3. */
const SINCE: Readonly<Record<string, readonly [major: number, minor: number]>> = {
  containerd: [2, 1],
  "cri-o": [1, 34],
};

/**
 * Whether a runtime reads drop-ins.
 * @param runtime as a Node's `status.nodeInfo.containerRuntimeVersion` names it: `containerd://2.2.9`
 * @returns undefined if the runtime is not known
 */
export function readsDropins(runtime: string | undefined): boolean | undefined {
  if (runtime === undefined) return undefined;
  const [, name = "", ...numbers] = /^([a-z-]+):\/\/v?(\d+)\.(\d+)/.exec(runtime) ?? [];
  const [major = 0, minor = 0] = numbers.map(Number);
  const since = SINCE[name];
  return since !== undefined && (major > since[0] || (major === since[0] && minor >= since[1]));
}

/** Whether a file in such a folder is one that runtimes read. */
export const isDropinName = (name: string): boolean => name.endsWith(".conf");

/** The folder with a configuration's drop-ins, by its name; undefined if no runtime appends any to it. */
export function dropinFolder(config: Config): string | undefined {
  return whyNoDropins(config) === undefined && config.kind === "list" ? config.name : undefined;
}

/** Why runtimes append no drop-ins to a configuration; undefined if they do. */
export function whyNoDropins(config: Config): string | undefined {
  if (config.kind === "invalid") return config.reason;
  if (config.kind === "single") return "holds a single plugin, not a list";
  if (config.inlinedOnly) return "says loadOnlyInlinedPlugins";
  // The name becomes that of a folder.
  return NETWORK_NAME.test(config.name) ? undefined : "has a name that is not a network's";
}
