import type { Transport } from "../kubernetes/client";
import type { Settings } from "./settings";

/** What a stopping installer does with what it installed, and why. */
export interface StopDecision {
  readonly remove: boolean;
  readonly why: string;
}

/** What the API server said about our own DaemonSet. */
export type Answer =
  | { readonly kind: "status"; readonly status: number; readonly deleting: boolean }
  | { readonly kind: "silence"; readonly reason: string };

/** Decides by the answer. Only a clear sign that the DaemonSet is gone removes anything. */
export function decideByAnswer(answer: Answer): StopDecision {
  if (answer.kind === "silence") return { remove: false, why: `the API server does not answer (${answer.reason})` };
  switch (answer.status) {
    case 200:
      return answer.deleting
        ? { remove: true, why: "our DaemonSet is being deleted" }
        : { remove: false, why: "our DaemonSet is there: another pod of it goes on" };
    case 404:
      return { remove: true, why: "our DaemonSet is deleted" };
    case 401:
    case 403:
      return { remove: true, why: `we may no longer ask (${answer.status}): our access is deleted` };
    default:
      return { remove: false, why: `the API server answers ${answer.status}` };
  }
}

function isDeleting(body: string): boolean {
  const object = JSON.parse(body) as { metadata?: { deletionTimestamp?: string } };
  return object.metadata?.deletionTimestamp !== undefined;
}

/** Asks for the DaemonSet. */
export async function askForDaemonSet(
  daemonSet: { readonly namespace: string; readonly name: string },
  transport: Transport,
  deadlineMs: number,
): Promise<Answer> {
  const path = `/apis/apps/v1/namespaces/${daemonSet.namespace}/daemonsets/${daemonSet.name}`;
  // The pods of a namespace that is being deleted may be told to stop before their DaemonSet is marked.
  const namespaceGoes = async () => {
    const { status, body } = await transport({ path: `/api/v1/namespaces/${daemonSet.namespace}`, deadlineMs });
    return status === 200 && isDeleting(body);
  };
  try {
    const { status, body } = await transport({ path, deadlineMs });
    const deleting = status === 200 && (isDeleting(body) || (await namespaceGoes()));
    return { kind: "status", status, deleting };
  } catch (error) {
    return { kind: "silence", reason: error instanceof Error ? error.message : String(error) };
  }
}

/** What the settings alone decide, or the DaemonSet to ask for. */
export function decideBySettings({
  stopPolicy,
  daemonSet,
}: Pick<Settings, "stopPolicy" | "daemonSet">):
  | ({ readonly kind: "decided" } & StopDecision)
  | { readonly kind: "undecided"; readonly ask: NonNullable<Settings["daemonSet"]> } {
  const decided = (remove: boolean, why: string) => ({ kind: "decided", remove, why }) as const;
  if (stopPolicy === "always") return decided(true, "UNINSTALL_ON_STOP is always");
  if (stopPolicy === "never") return decided(false, "UNINSTALL_ON_STOP is never");
  if (daemonSet === undefined) return decided(false, "POD_NAMESPACE and DAEMONSET_NAME do not name our DaemonSet");
  return { kind: "undecided", ask: daemonSet };
}
