import { CHAINED_NOTE } from "../../cni/contract";
import type { Choice } from "../plan/chaining";

export function renamedMessage(path: string): string {
  const single = path.replace(/\.conflist$/, ".conf");
  return `${path} was probably ${single} before linkerd's own installer renamed it and changed its name and version: it stays a list; to get ${single} back, let its owner write it again`;
}

export function hiddenMessage(path: string, reason: string, remedy: string): string {
  return `${path} ${reason}: it comes first, so the installer cannot tell which configuration the node uses; ${remedy}`;
}

const BLOCKS = "containerd does not use the files after it, and keeps the node NotReady while it cannot load it";
const REMEDY = "correct the file or move it out of the directory";

/** A broken file comes first, and the runtime does not skip it. */
export function blockedMessage(path: string, reason: string): string {
  return `${path} ${reason}: it comes first; ${BLOCKS}: ${REMEDY}`;
}

/** A broken file comes before the configuration in force. */
export function passedOverMessage(path: string, reason: string, passesOver: boolean | undefined): string {
  return `${path} ${reason}: skipped${passesOver === undefined ? ` by CRI-O; ${BLOCKS}: ${REMEDY}` : ""}`;
}

/** Another installer has started on this node. */
export function replacedMessage(path: string): string {
  return `${path} was replaced by another plugin that works, so it stays: another installer, such as linkerd's, has started on this node; restart this pod to install ours again`;
}

/** Pods are chained: where, how, and why. */
export function chainedMessage(path: string, { way, why }: Choice): string {
  const what = way === "edit" ? "ends in our stanza" : "holds our stanza";
  return `${path} ${what}: ${CHAINED_NOTE} (${way}: ${why})`;
}

/** Logs a message when it is new, not at every look. */
export function sayOnce(say: (message: string) => void): (messages: readonly string[]) => void {
  let said: ReadonlySet<string> = new Set();
  return (messages) => {
    for (const message of messages) if (!said.has(message)) say(message);
    said = new Set(messages);
  };
}
