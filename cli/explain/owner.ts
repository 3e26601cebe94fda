import type { ReplicaSet } from "kubernetes-types/apps/v1";
import type { ReplicationController } from "kubernetes-types/core/v1";
import type { LabelSelector } from "kubernetes-types/meta/v1";
import type { Checked, Sent } from "../check/objects";
import type { Kubectl } from "../kubectl";
import type { PodManifest } from "./material";

/** Kinds that own pods, by their short name in kubectl. */
const KINDS = {
  deploy: "deployments.apps",
  rs: "replicasets.apps",
  ds: "daemonsets.apps",
  sts: "statefulsets.apps",
  job: "jobs.batch",
  cj: "cronjobs.batch",
  rc: "replicationcontrollers",
} as const;

type Owner = Checked<ReplicaSet> | Checked<ReplicationController>;

interface Named {
  readonly namespace?: string;
  readonly name: string;
}

/** The kind that the first half of `deploy/web` names; undefined if it is a namespace. */
export function ownerKind(word: string): string | undefined {
  const name = word.toLowerCase().replace(/\.(?:apps|batch)$/, "");
  const found = Object.entries(KINDS).find(([short, kind]) => {
    const [plural = ""] = kind.split(".");
    return [short, plural, plural.slice(0, -1)].includes(name);
  });
  return found?.[1];
}

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

/** A selector in kubectl's form; a ReplicationController's is only labels. */
function selectorText({ spec }: Owner): string {
  const selector = spec?.selector ?? {};
  const isStructured = "matchLabels" in selector || "matchExpressions" in selector;
  const { matchLabels = {}, matchExpressions = [] }: Sent<LabelSelector> = isStructured
    ? selector
    : { matchLabels: selector as Readonly<Record<string, string>> };
  return [
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(
      ({ key, operator = "", values = [] }) => OPERATORS[operator]?.(key, values.join(",")) ?? key,
    ),
  ].join(",");
}

/** A CronJob has no selector, but its Jobs have: they name it as their owner. */
async function selectorsOf(kubectl: Kubectl, kind: string, object: Owner): Promise<readonly string[]> {
  if (kind !== KINDS.cj) return [selectorText(object)];
  const { namespace = "", uid } = object.metadata;
  const jobs = await kubectl.list<Owner>({ kind: KINDS.job, namespace });
  return jobs.filter(({ metadata }) => metadata.ownerReferences?.some((each) => each.uid === uid)).map(selectorText);
}

/** The pods of a Deployment, Job or another owner. @throws if it does not exist or has no pod */
export async function podsOf(
  kubectl: Kubectl,
  { owner, ...named }: Named & { readonly owner: string },
): Promise<readonly PodManifest[]> {
  const kind = ownerKind(owner) ?? owner;
  const object = await kubectl.get<Owner>({ kind, ...named });
  if (object === undefined) throw new Error(`no ${owner} ${named.name} ${where(named)}`);
  const { namespace = "" } = object.metadata;
  const selectors = (await selectorsOf(kubectl, kind, object)).filter((selector) => selector !== "");
  const lists = await Promise.all(
    selectors.map((selector) => kubectl.list<PodManifest>({ kind: "pods", namespace, selector })),
  );
  const pods = lists.flat();
  if (pods.length > 0) return pods;
  throw new Error(
    `${owner} ${namespace}/${named.name} has no pod, and only a pod shows what the injector configured: see kubectl describe`,
  );
}
