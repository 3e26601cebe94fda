import { type Kubectl, KubectlError } from "../kubectl";
import { docs } from "../links";
import { Category, type Finding, type Trouble } from "./finding";
import { type Read, type Snapshot, unreadParts } from "./snapshot";

const LINK = docs("cli.md#who-asks");
const REMEDY = "ask as a user who may read it";

/** The message if something cannot be read. */
export const unreadable = (problem: string): Trouble => ({ problem, remedy: REMEDY, link: LINK });

/** @throws a KubectlError if the answer is not an API server's, such as a proxy's login page */
async function versionOf(kubectl: Kubectl): Promise<string | undefined> {
  const text = await kubectl.run("get", "--raw", "/version");
  try {
    return (JSON.parse(text) as { readonly gitVersion?: string }).gitVersion;
  } catch {
    throw new KubectlError(`kubectl get --raw /version: ${JSON.stringify(text.slice(0, 100))} is not a version`);
  }
}

/** Whether the API server answers, which needs no permissions, and its version. */
export async function apiFinding(kubectl: Kubectl): Promise<Finding> {
  const category = new Category("kubernetes-api");
  const what = "the Kubernetes API answers";
  try {
    return category.good(what, await versionOf(kubectl));
  } catch (error) {
    if (!(error instanceof KubectlError)) throw error;
    const remedy = "see that kubectl works: kubectl version; --context and --kubeconfig choose the cluster";
    return category.bad(what, { problem: error.message, remedy, link: LINK });
  }
}

/** A failure if something cannot be read. Parts that the user may not read are reported in one warning. */
export function ifUnreadable(category: Category, what: string, read: Read<unknown>): readonly Finding[] {
  if ("value" in read || read.forbidden !== undefined) return [];
  return [category.bad(what, unreadable(read.problem))];
}

/** Parts that the user may not read: a warning, or an error if nothing can be checked. */
export function accessFindings(snapshot: Snapshot): readonly Finding[] {
  const category = new Category("kubernetes-api");
  const kinds = [...new Set(unreadParts(snapshot).flatMap(([, { forbidden }]) => forbidden ?? []))];
  if (kinds.length === 0) return [];
  const { daemonSet } = snapshot;
  const what = "the user may read all that is checked";
  if ("problem" in daemonSet && daemonSet.forbidden !== undefined) {
    const problem = `not allowed to read ${kinds.join(", ")}: cannot check anything: ${daemonSet.problem}`;
    return [category.bad(what, unreadable(problem))];
  }
  return [category.odd(what, unreadable(`not allowed to read ${kinds.join(", ")}: what these show is not checked`))];
}
