import { CONFIG_MAP, type ConfigMapObject } from "../configuration";
import { type Kubectl, KubectlError, type Question } from "../kubectl";
import { requiredGrants } from "./grants";
import { INSTALLER, NAME, SELECTOR } from "./names";
import {
  type CheckedPod,
  type DaemonSet,
  type Deployment,
  type Event,
  type Grant,
  isOurs,
  type Named,
  type WebhookConfiguration,
} from "./objects";
import { isReady, lastTrouble } from "./readiness";

/** What was read; a problem where it may not be, or cannot be. */
export type Read<T> = { readonly value: T } | { readonly problem: string };

/** A cluster at one moment. */
export interface Snapshot {
  /** Where the plugin should be. */
  readonly namespace: string;
  readonly namespaceObject: Read<Named | undefined>;
  readonly configMap: Read<ConfigMapObject | undefined>;
  readonly daemonSet: Read<DaemonSet | undefined>;
  /** Of all namespaces. */
  readonly daemonSets: Read<readonly DaemonSet[]>;
  readonly pods: Read<readonly CheckedPod[]>;
  /** What the installer's log says in pods that are not ready, by the pod's name. */
  readonly warnings: ReadonlyMap<string, string>;
  readonly nodes: Read<readonly Named[]>;
  /** Why pods of the DaemonSet could not be created. */
  readonly refusals: Read<readonly Event[]>;
  /** What is needed, beside what is there. */
  readonly grants: readonly { readonly wanted: Grant; readonly found: Read<Grant | undefined> }[];
  readonly webhook: Read<WebhookConfiguration | undefined>;
  readonly operator: Read<Deployment | undefined>;
  readonly definitions: Read<Named | undefined>;
}

/** How many pods' logs are read: what ails many nodes is the same on most of them. */
const MOST_LOGS = 5;

const kinds: Readonly<Record<string, string>> = {
  ServiceAccount: "serviceaccount",
  Role: "roles.rbac.authorization.k8s.io",
  RoleBinding: "rolebindings.rbac.authorization.k8s.io",
  ClusterRole: "clusterroles.rbac.authorization.k8s.io",
  ClusterRoleBinding: "clusterrolebindings.rbac.authorization.k8s.io",
};

async function read<T>(answer: Promise<T>): Promise<Read<T>> {
  try {
    return { value: await answer };
  } catch (error) {
    if (error instanceof KubectlError) return { problem: error.message };
    throw error;
  }
}

/** Reads one cluster. */
class Reader {
  constructor(
    private readonly kubectl: Kubectl,
    private readonly namespace: string,
  ) {}

  get<T>(kind: string, name: string, namespace?: string): Promise<Read<T | undefined>> {
    return read(this.kubectl.get<T>({ kind, name, ...(namespace === undefined ? {} : { namespace }) }));
  }

  list<T>(question: Question): Promise<Read<readonly T[]>> {
    return read(this.kubectl.list<T>(question));
  }

  grants(daemonSet: DaemonSet | undefined): Promise<Snapshot["grants"]> {
    // Another chart grants what its own pods need.
    const wanted = daemonSet === undefined || isOurs(daemonSet) ? requiredGrants(daemonSet, this.namespace) : [];
    return Promise.all(
      wanted.map(async (grant) => {
        const { name = "", namespace } = grant.metadata;
        return { wanted: grant, found: await this.get<Grant>(kinds[grant.kind] ?? "", name, namespace) };
      }),
    );
  }

  async warnings(pods: readonly CheckedPod[]): Promise<Snapshot["warnings"]> {
    const names = pods.filter((pod) => !isReady(pod)).map(({ metadata }) => metadata.name ?? "");
    const logs = await Promise.all(
      names.slice(0, MOST_LOGS).map(async (name) => {
        const args = ["logs", name, `--namespace=${this.namespace}`, `--container=${INSTALLER}`, "--tail=100"];
        const log = await read(this.kubectl.run(...args));
        return [name, "value" in log ? lastTrouble(log.value) : undefined] as const;
      }),
    );
    return new Map(logs.flatMap(([name, line]) => (line === undefined ? [] : [[name, line] as const])));
  }

  refusals(): Promise<Read<readonly Event[]>> {
    const fieldSelector = `involvedObject.kind=DaemonSet,involvedObject.name=${NAME},reason=FailedCreate`;
    return this.list<Event>({ kind: "events", namespace: this.namespace, fieldSelector });
  }
}

const known = <T>(what: Read<T>): T | undefined => ("value" in what ? what.value : undefined);

/** Reads all that is checked. What cannot be read is noted, and ends nothing. */
export async function takeSnapshot(kubectl: Kubectl, namespace: string): Promise<Snapshot> {
  const reader = new Reader(kubectl, namespace);
  const selector = `${SELECTOR.key}=${SELECTOR.value}`;
  const [daemonSet, pods] = await Promise.all([
    reader.get<DaemonSet>("daemonset", NAME, namespace),
    reader.list<CheckedPod>({ kind: "pods", namespace, selector }),
  ]);
  const operators = read(
    kubectl.list<Deployment>({
      kind: "deployments",
      everywhere: true,
      fieldSelector: "metadata.name=linkerd-multus",
    }),
  );
  const [namespaceObject, configMap, daemonSets, nodes, refusals, webhook, operator, definitions, grants, warnings] =
    await Promise.all([
      reader.get<Named>("namespace", namespace),
      reader.get<ConfigMapObject>("configmap", CONFIG_MAP, namespace),
      reader.list<DaemonSet>({ kind: "daemonsets", everywhere: true, selector }),
      reader.list<Named>({ kind: "nodes" }),
      reader.refusals(),
      reader.get<WebhookConfiguration>("mutatingwebhookconfigurations", "linkerd-multus"),
      operators.then((found) => ("value" in found ? { value: found.value[0] } : found)),
      reader.get<Named>("customresourcedefinitions", "network-attachment-definitions.k8s.cni.cncf.io"),
      reader.grants(known(daemonSet)),
      reader.warnings(known(pods) ?? []),
    ]);
  return {
    namespace,
    namespaceObject,
    configMap,
    daemonSet,
    daemonSets,
    pods,
    warnings,
    nodes,
    refusals,
    grants,
    webhook,
    operator,
    definitions,
  };
}
