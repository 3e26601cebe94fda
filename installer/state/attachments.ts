import { existsSync, readdirSync, readFileSync } from "node:fs";
import { attachmentName } from "../../cni/attachments";
import { codeOf } from "../../cni/errors";
import { callsPlugin } from "../../cni/stanza";
import { fromBase64, textOf } from "../../system/bytes";
import { join } from "../../system/path";

/** The fields used here of libcni's cache entry for an attachment. */
interface Cached {
  readonly containerId?: string;
  readonly ifName?: string;
  /** The network's configuration, in base64. */
  readonly config?: string;
}

function attachmentIn(path: string): readonly string[] {
  try {
    const { containerId, ifName, config = "" } = JSON.parse(readFileSync(path, "utf8")) as Cached;
    if (containerId === undefined || ifName === undefined) return [];
    return callsPlugin(textOf(fromBase64(config))) ? [attachmentName(containerId, ifName)] : [];
  } catch {
    return []; // it has just ended, or libcni cannot read it either
  }
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

/**
 * Attachments that libcni ends by a call of the plugin: those of Multus, which caches its calls. @param cacheDir the
 * node's directory of libcni and Multus @param ofRuntime whether the container runtime also caches its calls
 * @returns undefined if the directory is not visible from here
 */
export function readAttachments(cacheDir: string, ofRuntime: boolean): readonly string[] | undefined {
  if (!existsSync(cacheDir)) return undefined;
  const directories = [join(cacheDir, "multus", "results"), ...(ofRuntime ? [join(cacheDir, "results")] : [])];
  try {
    return directories.flatMap((directory) =>
      namesIn(directory).flatMap((name) => attachmentIn(join(directory, name))),
    );
  } catch {
    return undefined;
  }
}
