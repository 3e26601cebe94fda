import type { Transport } from "../kubernetes/client";
import type { NamespaceObject, ObjectMeta, PodObject } from "../kubernetes/types";
import { type NodeObject, type PlacementSpec, unwantedOn } from "./api/placement";
import type { Settings } from "./settings";

/** Four questions, the one for the runtime, and the removal fit into a terminationGracePeriodSeconds of 30. */
const DEADLINE_MS = 4_000;

/** What a stopping installer does with what it installed, and why. */
export interface StopDecision {
  readonly remove: boolean;
  readonly why: string;
}

/** What the API server said about our own DaemonSet. */
export type Answer =
  | DaemonSetIsThere
  | WeAreRefused
  | { readonly kind: "status"; readonly status: number }
  | { readonly kind: "silence"; readonly reason: string };

interface DaemonSetIsThere {
  readonly kind: "there";
  readonly deleting: boolean;
  /** Why it wants no pod on this node, ours being deleted; absent: it wants one, or nobody can tell. */
  readonly unwanted?: string;
}

interface WeAreRefused {
  readonly kind: "refused";
  readonly status: number;
  /** Whether the plugin is let in. */
  readonly plugin: boolean;
}

const leave = (why: string): StopDecision => ({ remove: false, why });
const remove = (why: string): StopDecision => ({ remove: true, why });

/** Decides by the answer. Only a clear sign that the DaemonSet is gone, or wants this node no more, removes anything. */
export function decideByAnswer(answer: Answer): StopDecision {
  switch (answer.kind) {
    case "there":
      if (answer.deleting) return remove("our DaemonSet is being deleted");
      return answer.unwanted === undefined
        ? leave("our DaemonSet is there: another pod of it goes on")
        : remove(`our DaemonSet wants this node no more, by ${answer.unwanted}`);
    case "refused":
      return answer.plugin
        ? leave(`our own token is refused (${answer.status}), and the plugin's is not: our pod alone is deleted`)
        : remove(`we may no longer ask (${answer.status}): our access is deleted`);
    case "status":
      return answer.status === 404
        ? remove("our DaemonSet is deleted")
        : leave(`the API server answers ${answer.status}`);
    case "silence":
      return leave(`the API server does not answer (${answer.reason})`);
  }
}

interface DaemonSetObject {
  readonly metadata?: ObjectMeta;
  readonly spec?: { readonly template?: { readonly spec?: PlacementSpec } };
}

const isDeleting = ({ metadata }: { readonly metadata?: ObjectMeta }): boolean =>
  metadata?.deletionTimestamp !== undefined;

/** Asks for one object; what an answer other than 200 holds does not matter. */
async function get<T>(send: Transport, path: string): Promise<{ readonly status: number; readonly object?: T }> {
  const { status, body } = await send({ path, deadlineMs: DEADLINE_MS });
  return status === 200 ? { status, object: JSON.parse(body) as T } : { status };
}

/** Whom a stopping installer asks, and about what. */
export interface Question {
  readonly daemonSet: { readonly namespace: string; readonly name: string };
  /** Where we run, and as which pod; absent: nobody can tell whether the DaemonSet wants a pod there. */
  readonly node?: string | undefined;
  readonly pod?: string | undefined;
  readonly own: Transport;
  /** The plugin, which has a token that does not end with our pod; absent where it has none. */
  readonly plugin?: Transport | undefined;
}

/** Asks for the DaemonSet, and for what makes the answer certain. */
export async function askForDaemonSet(question: Question): Promise<Answer> {
  const { namespace, name } = question.daemonSet;
  try {
    const path = `/apis/apps/v1/namespaces/${namespace}/daemonsets/${name}`;
    const { status, object } = await get<DaemonSetObject>(question.own, path);
    if (object !== undefined) return await thereIs(object, question);
    if (status === 401) return { kind: "refused", status, plugin: await isPluginLetIn(question) };
    return status === 403 ? { kind: "refused", status, plugin: false } : { kind: "status", status };
  } catch (error) {
    return { kind: "silence", reason: error instanceof Error ? error.message : String(error) };
  }
}

async function thereIs(daemonSet: DaemonSetObject, question: Question): Promise<Answer> {
  if (isDeleting(daemonSet)) return { kind: "there", deleting: true };
  // The pods of a namespace that is being deleted may be told to stop before their DaemonSet is marked.
  const { object = {} } = await get<NamespaceObject>(question.own, namespacePath(question));
  if (isDeleting(object)) return { kind: "there", deleting: true };
  const unwanted = await whyUnwanted(daemonSet, question);
  return { kind: "there", deleting: false, ...(unwanted === undefined ? {} : { unwanted }) };
}

const namespacePath = ({ daemonSet: { namespace } }: Question): string => `/api/v1/namespaces/${namespace}`;

/**
 * Why the DaemonSet wants no pod here. A container that stops alone, by its probe or together with the node, comes back:
 * the pod has to be going. Where a taint only keeps new pods away, the controller lets ours be.
 */
async function whyUnwanted({ spec }: DaemonSetObject, question: Question): Promise<string | undefined> {
  const { node, pod, own } = question;
  if (node === undefined || pod === undefined) return undefined;
  const { object: where } = await get<NodeObject>(own, `/api/v1/nodes/${node}`);
  const unwanted = where && unwantedOn(spec?.template?.spec ?? {}, where);
  if (unwanted === undefined) return undefined;
  const { object: ours } = await get<PodObject>(own, `${namespacePath(question)}/pods/${pod}`);
  return ours !== undefined && isDeleting(ours) ? unwanted : undefined;
}

/**
 * A pod that is deleted by force loses its token at once, as if its account were deleted. The plugin's is bound to the
 * node: where it is let in, nobody uninstalls, unless the whole namespace goes.
 */
async function isPluginLetIn(question: Question): Promise<boolean> {
  if (question.plugin === undefined) return false;
  const { status, object } = await get<NamespaceObject>(question.plugin, namespacePath(question));
  return object === undefined ? ![401, 403, 404].includes(status) : !isDeleting(object);
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
