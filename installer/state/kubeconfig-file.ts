import { textOf } from "../../system/bytes";
import type { FoundFile } from "./node-state";

/** The token of a kubeconfig; undefined if it has none. */
export function tokenIn(text: string): string | undefined {
  try {
    const { users } = JSON.parse(text) as { users?: { user?: { token?: string } }[] };
    return users?.[0]?.user?.token;
  } catch {
    return undefined;
  }
}

/** Whether a kubeconfig intentionally has no token: the plugin then asks only the installer. */
export function isTokenless(file: FoundFile | undefined): boolean {
  try {
    const { users } = JSON.parse(textOf(file?.bytes ?? new Uint8Array(0))) as { users?: { user?: object }[] };
    const user = users?.[0]?.user;
    return user !== undefined && Object.keys(user).length === 0;
  } catch {
    return false;
  }
}

/** The same for a kubeconfig file on the node. */
export function tokenOf(file: FoundFile | undefined): string | undefined {
  return file?.bytes === undefined ? undefined : tokenIn(textOf(file.bytes));
}
