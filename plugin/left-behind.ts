/**
 * Drop-ins and auxiliary chains that an installer left in force, for instance because it was killed during a rollback to
 * linkerd's chart. They must keep no pod from starting, nor set rules beside linkerd's.
 */
import { DROPIN_TYPE, PLUGIN_TYPE } from "../cni/stanza";
import { Errno } from "../host/errno";
import { changedAt, readText } from "../host/files";
import type { Call } from "./call";

/** A drop-in of an ended installation passes a pod on. */
export interface LeftBehind {
  readonly kind: "skip";
  readonly reason: "linkerd's plugin sets the rules" | "uninstalled";
}

const CALLS_LINKERDS = new RegExp(`"type"\\s*:\\s*"${PLUGIN_TYPE}"`);

/** Seconds within which a container runtime calls the plugins of a changed list. */
const READ_WITHIN_S = 10;

/**
 * Whether linkerd's plugin was called for this pod before: the list that the drop-in extends had its stanza already when
 * the pod's network namespace was made. An older pod's chain may have been read before the list was changed.
 */
export function isLinkerds({ host, target, config: { source } }: Call): boolean {
  const { type, extends: list } = source;
  if (type !== DROPIN_TYPE || typeof list !== "string") return false;
  try {
    return (
      CALLS_LINKERDS.test(readText(host, list)) && changedAt(host, list) + READ_WITHIN_S < changedAt(host, target.netns)
    );
  } catch {
    return false;
  }
}

/** Whether the installation has ended: any installer, also linkerd's, removes the executable that linkerd's has too. */
export function isUninstalled({ host, env, config: { source } }: Call): boolean {
  const directories = (env["CNI_PATH"] ?? "").split(":");
  const isGone = (directory: string) => host.access(`${directory}/${PLUGIN_TYPE}`) === -Errno.ENOENT;
  return source["type"] === DROPIN_TYPE && directories.every(isGone);
}
