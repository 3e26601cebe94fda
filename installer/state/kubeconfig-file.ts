import { textOf } from "../../system/bytes";
import type { FoundFile } from "./node-state";

/** The token of a kubeconfig; undefined where it holds none. */
export function tokenIn(text: string): string | undefined {
  try {
    const { users } = JSON.parse(text) as { users?: { user?: { token?: string } }[] };
    return users?.[0]?.user?.token;
  } catch {
    return undefined;
  }
}

/** The same of a kubeconfig that lies on the node. */
export function tokenOf(file: FoundFile | undefined): string | undefined {
  return file?.bytes === undefined ? undefined : tokenIn(textOf(file.bytes));
}
