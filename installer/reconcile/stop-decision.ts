import { InstallerVariable } from "../../cni/contract";
import { reasonOf } from "../../cni/errors";
import { type PlacementSpec, whyNotPlaced } from "../../kubernetes/placement";
import type { Transport } from "../../kubernetes/transport";
import type { NamespaceObject, NodeObject, ObjectMeta } from "../../kubernetes/types";
import type { Settings } from "../settings";

const DEADLINE_MS = 4_000;

/**
 * How long a stopping installer asks. `helm uninstall` deletes the DaemonSet first, then role bindings, and service
 * accounts last: until those are deleted, the API server answers 403, and for ten seconds more, because API servers
 * cache accepted tokens for that long. With this limit, the request for the runtime and the removal also fit into a
 * terminationGracePeriodSeconds of 30.
 */
const ASK_FOR_MS = 15_000;
const ASK_AGAIN_MS = 2_000;

/** What a stopping installer does with its files, and why. */
export interface StopDecision {
  readonly remove: boolean;
  readonly why: string;
  /** The whole installation ends: the files of another installer are also removed. */
  readonly all?: true | undefined;
}

/** The result of one round of requests. */
export interface Finding extends StopDecision {
  /** `confirmable`: decides if the next round gives the same result; `doubtful`: never decides before the deadline. */
  readonly is: "certain" | "confirmable" | "doubtful";
}

const certain = (remove: boolean, why: string): Finding => ({ is: "certain", remove, why, all: remove || undefined });
const confirmable = (remove: boolean, why: string): Finding => ({ is: "confirmable", remove, why });
/** `helm rollback` to linkerd's chart also removes our permissions before our pod stops. */
const doubtful = (why: string): Finding => ({ is: "doubtful", remove: false, why });

interface Clock {
  readonly sleep: (ms: number) => Promise<unknown>;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/**
 * Asks until the answer is certain or confirmed. If it never is, everything stays. @param tell called with the finding
 * before each repetition
 */
export async function decide(
  ask: () => Promise<Finding>,
  { sleep, now }: Clock,
  tell: (why: string) => void,
): Promise<StopDecision> {
  const until = now() + ASK_FOR_MS;
  let last: Finding | undefined;
  for (;;) {
    const finding = await ask();
    const { is, why, ...decision } = finding;
    if (is === "certain" || (is === "confirmable" && last?.why === why)) return { ...decision, why };
    if (now() + ASK_AGAIN_MS > until) return { ...decision, remove: false, why };
    if (why !== last?.why) tell(why);
    last = finding;
    await sleep(ASK_AGAIN_MS);
  }
}

interface DaemonSetObject {
  readonly metadata?: ObjectMeta;
  readonly spec?: { readonly template?: { readonly spec?: PlacementSpec } };
}

const isDeleting = ({ metadata }: { readonly metadata?: ObjectMeta }): boolean =>
  metadata?.deletionTimestamp !== undefined;

interface Got<T> {
  readonly status: number;
  readonly object?: T;
  /** The API server says that the object does not exist. */
  readonly isAbsent?: true;
}

interface StatusObject {
  readonly kind?: string;
  readonly reason?: string;
  readonly details?: { readonly kind?: string; readonly name?: string };
}

/** Whether an answer says that this object is absent. A proxy's 404, or that of a server without the resource, does not. */
function isAbsent(body: string, path: string): boolean {
  const [resource, name] = path.split("/").slice(-2);
  try {
    const { kind, reason, details } = JSON.parse(body) as StatusObject;
    return kind === "Status" && reason === "NotFound" && details?.kind === resource && details?.name === name;
  } catch {
    return false;
  }
}

/** Asks for one object. */
async function get<T>(send: Transport, path: string): Promise<Got<T>> {
  const { status, body } = await send({ path, deadlineMs: DEADLINE_MS });
  if (status === 200) return { status, object: JSON.parse(body) as T };
  return status === 404 && isAbsent(body, path) ? { status, isAbsent: true } : { status };
}

/** The inputs of a stopping installer's decision. */
interface Question {
  readonly daemonSet: { readonly namespace: string; readonly name: string };
  /** Our node and pod; absent if it is unknown whether the DaemonSet wants a pod there. */
  readonly node?: string | undefined;
  readonly pod?: string | undefined;
  readonly own: Transport;
  /** Access by a token that is not bound to our pod; absent without one. */
  readonly unbound?: Transport | undefined;
}

/** Requests the DaemonSet, and what confirms the answer. Never rejects. */
export async function askForDaemonSet(question: Question): Promise<Finding> {
  const { namespace, name } = question.daemonSet;
  try {
    const path = `/apis/apps/v1/namespaces/${namespace}/daemonsets/${name}`;
    const { status, object, isAbsent } = await get<DaemonSetObject>(question.own, path);
    if (object !== undefined) return await thereIs(object, question);
    if (isAbsent) return certain(true, `our DaemonSet ${namespace}/${name} is deleted`);
    if (status === 401) return await unknown(question);
    if (status === 403) return await forbidden(question);
    return confirmable(false, `the API server answers ${status}`);
  } catch (error) {
    return confirmable(false, `the API server does not answer (${reasonOf(error)})`);
  }
}

async function thereIs(daemonSet: DaemonSetObject, question: Question): Promise<Finding> {
  if (isDeleting(daemonSet)) return certain(true, "our DaemonSet is being deleted");
  // The pods of a namespace that is being deleted may be stopped before their DaemonSet is marked.
  const { object = {} } = await get<NamespaceObject>(question.own, namespacePath(question));
  if (isDeleting(object)) return certain(true, NAMESPACE_GONE);
  const unwanted = await whyUnwanted(daemonSet, question);
  if (unwanted !== undefined) return certain(true, `our DaemonSet no longer selects this node: ${unwanted}`);
  return certain(false, "our DaemonSet is there: its next pod takes over");
}

const NAMESPACE_GONE = "our namespace is being deleted";
const isGone = ({ isAbsent, object = {} }: Got<NamespaceObject>): boolean => isAbsent === true || isDeleting(object);

/**
 * Our token is refused: the service account was deleted, or our pod was deleted by force. If the token that is not bound
 * to our pod is accepted, this is not an uninstall.
 */
async function unknown(question: Question): Promise<Finding> {
  const { unbound } = question;
  if (unbound === undefined) return confirmable(true, "our token is refused (401): our service account is deleted");
  const namespace = await get<NamespaceObject>(unbound, namespacePath(question));
  if (isGone(namespace)) return certain(true, NAMESPACE_GONE);
  if (namespace.status === 401) {
    return confirmable(
      true,
      "our token and the one not bound to our pod are refused (401): the service account is deleted",
    );
  }
  if (namespace.status === 200) {
    return confirmable(
      false,
      "our own token is refused (401), but the one not bound to our pod is accepted: only our pod is deleted",
    );
  }
  return doubtful(
    `our token is refused (401), and the API server answers the one not bound to our pod with ${namespace.status}`,
  );
}

/**
 * The request is forbidden. An uninstall is only one of several reasons: others are a user's own role, a rollback to a
 * chart whose role lacks DaemonSets, and a temporary fault of the role bindings.
 */
async function forbidden(question: Question): Promise<Finding> {
  for (const send of [question.own, question.unbound]) {
    if (send !== undefined && isGone(await get<NamespaceObject>(send, namespacePath(question)))) {
      return certain(true, NAMESPACE_GONE);
    }
  }
  return doubtful("we may not get our DaemonSet (403), and nothing says that it is deleted");
}

const namespacePath = ({ daemonSet: { namespace } }: Question): string => `/api/v1/namespaces/${namespace}`;

/**
 * Why the DaemonSet wants no pod here. Our pod must be terminating: if a taint only keeps new pods away, the controller
 * keeps ours.
 */
async function whyUnwanted({ spec }: DaemonSetObject, question: Question): Promise<string | undefined> {
  const { node, pod, own } = question;
  if (node === undefined || pod === undefined) return undefined;
  const { object: where } = await get<NodeObject>(own, `/api/v1/nodes/${node}`);
  const unwanted = where && whyNotPlaced(spec?.template?.spec ?? {}, where);
  return unwanted !== undefined && (await isPodDeleted(question)) ? unwanted : undefined;
}

/** Whether our pod is being deleted. A container that stops alone, because of its probe or with the node, restarts. */
async function isPodDeleted(question: Question): Promise<boolean> {
  if (question.pod === undefined) return false;
  type Pod = { readonly metadata?: ObjectMeta };
  const { object: ours } = await get<Pod>(question.own, `${namespacePath(question)}/pods/${question.pod}`);
  return ours !== undefined && isDeleting(ours);
}

/** The decision by the settings alone; undefined if the API server must be asked. */
export function decideBySettings({ stopPolicy }: Pick<Settings, "stopPolicy">): StopDecision | undefined {
  if (stopPolicy === "always") return { remove: true, why: `${InstallerVariable.stopPolicy} is always` };
  if (stopPolicy === "never") return { remove: false, why: `${InstallerVariable.stopPolicy} is never` };
  return undefined;
}
