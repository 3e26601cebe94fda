import type { Named } from "../check/objects";
import type { Kubectl } from "../kubectl";
import type { PodManifest } from "./material";

interface Wanted {
  readonly namespace?: string;
  readonly name: string;
}

/** Kinds that own pods, by their names in kubectl. */
const KINDS =
  /^(deploy(ments?)?|rs|replicasets?|ds|daemonsets?|sts|statefulsets?|jobs?|cj|cronjobs?|rc|replicationcontrollers?)(\.(apps|batch))?$/i;

/** Whether the first half of `deploy/web` is a kind, not a namespace. */
export const isOwnerKind = (word: string): boolean => KINDS.test(word);

const where = ({ namespace }: Wanted) =>
  namespace === undefined ? "in the context's namespace" : `in namespace ${namespace}`;

/** @throws if the pod does not exist */
export async function onePod(kubectl: Kubectl, pod: Wanted): Promise<PodManifest> {
  const found = await kubectl.get<PodManifest>({ kind: "pod", ...pod });
  if (found === undefined) throw new Error(`no pod ${pod.name} ${where(pod)}`);
  return found;
}

/** An object that may be owned by another. */
type Owned = Named & { readonly kind?: string };

/** What a Deployment or a CronJob owns, which owns the pods. */
const between = (kind: string): string =>
  /^deploy/i.test(kind) ? ",replicasets.apps" : /^c/i.test(kind) ? ",jobs.batch" : "";

/** The pods of an object, also those of its ReplicaSets or Jobs. */
function podsUnder({ metadata: { uid } }: Named, all: readonly Owned[]): readonly Owned[] {
  const own = all.filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid));
  return own.flatMap((each) => (each.kind === "Pod" ? [each] : podsUnder(each, all)));
}

/** The pods of a Deployment, Job or another owner. @throws if it does not exist or has no pod */
export async function podsOf(
  kubectl: Kubectl,
  { owner, ...named }: Wanted & { readonly owner: string },
): Promise<readonly PodManifest[]> {
  const object = await kubectl.get<Named>({ kind: owner, ...named });
  if (object === undefined) throw new Error(`no ${owner} ${named.name} ${where(named)}`);
  const { namespace = "" } = object.metadata;
  const all = await kubectl.list<Owned>({ kind: `pods${between(owner)}`, namespace });
  const pods = podsUnder(object, all) as readonly PodManifest[];
  if (pods.length > 0) return pods;
  throw new Error(
    `${owner} ${namespace}/${named.name} has no pod, and only a pod shows what the injector configured: see kubectl describe`,
  );
}
