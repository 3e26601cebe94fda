import type { Kubectl } from "../kubectl";
import type { PodManifest } from "./material";

/** Kinds that own pods, by all their names in kubectl. */
const KINDS: Readonly<Record<string, string>> = {
  deploy: "deployments.apps",
  deployment: "deployments.apps",
  deployments: "deployments.apps",
  rs: "replicasets.apps",
  replicaset: "replicasets.apps",
  replicasets: "replicasets.apps",
  ds: "daemonsets.apps",
  daemonset: "daemonsets.apps",
  daemonsets: "daemonsets.apps",
  sts: "statefulsets.apps",
  statefulset: "statefulsets.apps",
  statefulsets: "statefulsets.apps",
  job: "jobs.batch",
  jobs: "jobs.batch",
  cj: "cronjobs.batch",
  cronjob: "cronjobs.batch",
  cronjobs: "cronjobs.batch",
  rc: "replicationcontrollers",
  replicationcontroller: "replicationcontrollers",
  replicationcontrollers: "replicationcontrollers",
};

interface Named {
  readonly namespace?: string;
  readonly name: string;
}

interface OwnedObject {
  readonly metadata: {
    readonly name?: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly ownerReferences?: readonly { readonly uid?: string }[];
  };
  readonly spec?: {
    readonly selector?:
      | Readonly<Record<string, string>>
      | {
          readonly matchLabels?: Readonly<Record<string, string>>;
          readonly matchExpressions?: readonly {
            readonly key: string;
            readonly operator: string;
            readonly values?: readonly string[];
          }[];
        };
  };
}

const plain = (word: string) => word.toLowerCase().replace(/\.(?:apps|batch)$/, "");

/** Whether the first half of `deploy/web` names a kind, not a namespace. */
export const isOwner = (word: string): boolean => Object.hasOwn(KINDS, plain(word));

const where = ({ namespace }: Named) =>
  namespace === undefined ? "in the context's namespace" : `in namespace ${namespace}`;

/** @throws if the pod does not exist */
export async function onePod(kubectl: Kubectl, pod: Named): Promise<PodManifest> {
  const found = await kubectl.get<PodManifest>({ kind: "pod", ...pod });
  if (found === undefined) throw new Error(`no pod ${pod.name} ${where(pod)}`);
  return found;
}

const OPERATORS: Readonly<Record<string, (key: string, values: string) => string>> = {
  In: (key, values) => `${key} in (${values})`,
  NotIn: (key, values) => `${key} notin (${values})`,
  Exists: (key) => key,
  DoesNotExist: (key) => `!${key}`,
};

/** A selector in kubectl's form. */
function selectorText({ spec }: OwnedObject): string {
  const selector = spec?.selector ?? {};
  const isStructured = "matchLabels" in selector || "matchExpressions" in selector;
  const { matchLabels = {}, matchExpressions = [] } = (isStructured ? selector : { matchLabels: selector }) as {
    readonly matchLabels?: Readonly<Record<string, string>>;
    readonly matchExpressions?: readonly { key: string; operator: string; values?: readonly string[] }[];
  };
  return [
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(({ key, operator, values = [] }) => OPERATORS[operator]?.(key, values.join(",")) ?? key),
  ].join(",");
}

/** A CronJob has no selector, but its Jobs have: they name it as their owner. */
async function selectorsOf(kubectl: Kubectl, kind: string, object: OwnedObject): Promise<readonly string[]> {
  if (kind !== KINDS["cronjob"]) return [selectorText(object)];
  const { namespace = "", uid } = object.metadata;
  const jobs = await kubectl.list<OwnedObject>({ kind: KINDS["job"] ?? "", namespace });
  return jobs.filter(({ metadata }) => metadata.ownerReferences?.some((each) => each.uid === uid)).map(selectorText);
}

/** The pods of a Deployment, Job or another owner. @throws if it does not exist or has no pod */
export async function podsOf(
  kubectl: Kubectl,
  { owner, ...named }: Named & { readonly owner: string },
): Promise<readonly PodManifest[]> {
  const kind = KINDS[plain(owner)] ?? owner;
  const object = await kubectl.get<OwnedObject>({ kind, ...named });
  if (object === undefined) throw new Error(`no ${owner} ${named.name} ${where(named)}`);
  const { namespace = "" } = object.metadata;
  const selectors = (await selectorsOf(kubectl, kind, object)).filter((selector) => selector !== "");
  const lists = await Promise.all(
    selectors.map((selector) => kubectl.list<PodManifest>({ kind: "pods", namespace, selector })),
  );
  const pods = lists.flat();
  if (pods.length > 0) return pods;
  throw new Error(
    `${owner} ${namespace}/${named.name} has no pod now, and only a pod says what the injector made of it: see kubectl describe`,
  );
}
