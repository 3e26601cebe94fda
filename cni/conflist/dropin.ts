/**
 * Drop-ins: since libcni 1.3, a runtime appends the plugins in `NAME/*.conf` to a list with the name NAME, in the order
 * of file names, unless the list sets `loadOnlyInlinedPlugins`. It never appends to a single plugin's file.
 */
import { readsDropins } from "../runtime";
import type { Config, Libcni } from "./read";

/** The name of our file in such a folder: the last one, so that all other plugins run before ours. */
export const DROPIN_FILE = "99-linkerd-cni.conf";

/** A network name that libcni accepts. */
const NETWORK_NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

/** A runtime's libcni; the newest if the runtime is unknown. */
export const libcniOf = (runtime: string | undefined): Libcni => (readsDropins(runtime) === false ? "1.1" : "1.3");

/** Whether runtimes read a file in such a folder. */
export const isDropinName = (name: string): boolean => name.endsWith(".conf");

/** The name of the folder with a configuration's drop-ins; undefined if runtimes do not append any to it. */
export function dropinFolder(config: Config): string | undefined {
  return whyNoDropins(config) === undefined && config.kind === "list" ? config.name : undefined;
}

/** Why runtimes do not append drop-ins to a configuration; undefined if they do. */
export function whyNoDropins(config: Config): string | undefined {
  if (config.kind === "invalid") return config.reason;
  if (config.kind === "single") return "holds a single plugin, not a list";
  if (config.inlinedOnly) return "says loadOnlyInlinedPlugins";
  // The name is also a folder's name.
  return NETWORK_NAME.test(config.name) ? undefined : "has a name that is not a network's";
}
