import { ApiReach, CHAINED_NOTE, CONFIG_MAP, InstallerVariable, MULTUS_NAME, NRI_NAME } from "../../cni/contract";
import type { LinkerdCniProps } from "../../constructs";
import type { ConfigMapObject } from "../configuration";
import { type Kubectl, KubectlError, type Question } from "../kubectl";
import { installed } from "../resources";
import {
  type CheckedPod,
  type DaemonSet,
  type Deployment,
  type Event,
  type Grant,
  installerOf,
  isOurs,
  isReady,
  LOG_LINES,
  mainContainer,
  NAME,
  type Named,
  type NodeObject,
  OWN_PODS,
  repairOf,
  SELECTOR,
  unreadyFirst,
  type WebhookConfiguration,
} from "./objects";

const KINDS = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];

/** The values that decide about permissions, as far as the DaemonSets show them. */
function valuesOf(daemonSet: DaemonSet, nri: DaemonSet | undefined): LinkerdCniProps {
  const env = installerOf(daemonSet);
  return {
    nodeTaint: { enabled: env.has(InstallerVariable.nodeTaint) },
    // More may be granted, but is not needed.
    rbac: { minimal: true },
    repairController: { enabled: repairOf(daemonSet) !== undefined },
    nri: { enabled: nri !== undefined || env.get(InstallerVariable.nriEvents) === "true" },
  };
}

/** The chart's accounts and roles for the DaemonSets. */
export function requiredGrants(daemonSet: DaemonSet, namespace: string, nri?: DaemonSet): readonly Grant[] {
  return installed(valuesOf(daemonSet, nri), namespace).filter(({ kind }) => KINDS.includes(kind)) as readonly Grant[];
}

/** A part that was read, or a problem; if the user may not read it, `forbidden` names the kind. */
export type Read<T> = { readonly value: T } | { readonly problem: string; readonly forbidden?: string };

/** The state of a cluster. */
export interface Snapshot {
  /** The plugin's namespace. */
  readonly namespace: string;
  readonly namespaceObject: Read<Named | undefined>;
  readonly configMap: Read<ConfigMapObject | undefined>;
  readonly daemonSet: Read<DaemonSet | undefined>;
  /** Of all namespaces. */
  readonly daemonSets: Read<readonly DaemonSet[]>;
  /** The DaemonSet of the NRI plugin. */
  readonly nri: Read<DaemonSet | undefined>;
  /** Of both DaemonSets. */
  readonly pods: Read<readonly CheckedPod[]>;
  /** The last warning or error in each pod's log, by the pod's name. */
  readonly warnings: ReadonlyMap<string, string>;
  /** How pods are chained, by the name of the ready pod with that log line: `dropin: containerd://2.2.9 reads …`. */
  readonly chainings: ReadonlyMap<string, string>;
  readonly nodes: Read<readonly NodeObject[]>;
  /** Why pods of the DaemonSet could not be created. */
  readonly refusals: Read<readonly Event[]>;
  /** The same for the NRI plugin. */
  readonly nriRefusals: Read<readonly Event[]>;
  /** Pods of all namespaces that have not started. */
  readonly pending: Read<readonly CheckedPod[]>;
  /** Pods of all namespaces that have started and not ended. */
  readonly running: Read<readonly CheckedPod[]>;
  readonly namespaces: Read<readonly Named[]>;
  /** Why sandboxes could not be created, in all namespaces. */
  readonly sandboxFailures: Read<readonly Event[]>;
  /** The required object and the existing one. */
  readonly grants: readonly { readonly wanted: Grant; readonly found: Read<Grant | undefined> }[];
  readonly webhook: Read<WebhookConfiguration | undefined>;
  readonly operator: Read<Deployment | undefined>;
  readonly definitions: Read<Named | undefined>;
}

type Problem = Extract<Read<unknown>, { readonly problem: string }>;

const isProblem = (part: unknown): part is Problem => typeof part === "object" && part !== null && "problem" in part;

/** The parts that could not be read, by name. */
export function unreadParts({ grants, ...parts }: Snapshot): readonly (readonly [name: string, Problem])[] {
  const wanted = grants.map(({ wanted: { kind, metadata }, found }) => [`${kind} ${metadata.name}`, found] as const);
  return [...Object.entries<unknown>(parts), ...wanted].flatMap(([name, part]) =>
    isProblem(part) ? [[name, part] as const] : [],
  );
}

/** The part, if it could be read. */
export const known = <T>(what: Read<T>): T | undefined => ("value" in what ? what.value : undefined);

/** Maximum number of pods whose logs are read, unready ones first: many nodes usually have the same problem. */
const MOST_LOGS = 5;
const TAIL = `--tail=${LOG_LINES}`;
/** A ready installer logs at its start how pods are chained. */
const HEAD = "--limit-bytes=65536";
/** While it cannot reach the API server, it logs that every minute. */
const RECENT = "--since=2m";

/** Prefix of the installer's and NRI plugin's lines; the installer only passes the CNI plugin's lines on. */
const OWN_LINE = /^linkerd-cni(?:-nri)?: (?:warn|error): (?!plugin: )/;

/** What linkerd's plugin prints if it is started without a container runtime, as by our chart with linkerd's image. */
export const LINKERDS_PLUGIN = /required env variables \[.*CNI_COMMAND/;

/** Lines of a log about the installer itself; an error keeps it from being ready. */
function lastTrouble(log: string): string | undefined {
  const lines = log.split("\n").filter((line) => OWN_LINE.test(line) || LINKERDS_PLUGIN.test(line));
  return lines.findLast((line) => /^\S+ error: /.test(line)) ?? lines.at(-1);
}

const CHAINING = new RegExp(`^linkerd-cni: info: .* ${CHAINED_NOTE} \\((.*)\\)$`);

/** How a node's pods are chained, by the last such line of a log. */
const chainingIn = (log: string): string | undefined =>
  CHAINING.exec(log.split("\n").findLast((line) => CHAINING.test(line)) ?? "")?.[1];

/** A ready installer's last message about the API server, if it cannot reach it. */
function unreachedWarning(log: string): string | undefined {
  const last = log.split("\n").findLast((line) => line.includes(ApiReach.lost) || line.includes(ApiReach.regained));
  return last?.includes(ApiReach.lost) ? last : undefined;
}

const kinds: Readonly<Record<string, string>> = {
  ServiceAccount: "serviceaccount",
  Role: "roles.rbac.authorization.k8s.io",
  RoleBinding: "rolebindings.rbac.authorization.k8s.io",
  ClusterRole: "clusterroles.rbac.authorization.k8s.io",
  ClusterRoleBinding: "clusterrolebindings.rbac.authorization.k8s.io",
};

/** `clusterroles` of `clusterroles.rbac.authorization.k8s.io`, and `namespaces` of `namespace`. */
const plural = (kind: string): string => kind.replace(/\..*/, "").replace(/s?$/, "s");

/** Turns a refusal of kubectl into a result. */
export async function read<T>(kind: string, answer: Promise<T>): Promise<Read<T>> {
  try {
    return { value: await answer };
  } catch (error) {
    if (!(error instanceof KubectlError)) throw error;
    const { message } = error;
    return { problem: message, ...(error.isForbidden ? { forbidden: plural(kind) } : {}) };
  }
}

/** The results of promises, by name. */
export async function all<T extends object>(promises: { readonly [Name in keyof T]: Promise<T[Name]> }): Promise<T> {
  const named = Object.entries<Promise<unknown>>(promises).map(
    async ([name, promise]) => [name, await promise] as const,
  );
  return Object.fromEntries(await Promise.all(named)) as T;
}

/** Reads one cluster. */
class Reader {
  constructor(
    private readonly kubectl: Kubectl,
    private readonly namespace: string,
  ) {}

  get<T>(kind: string, name: string, namespace?: string): Promise<Read<T | undefined>> {
    return read(kind, this.kubectl.get<T>({ kind, name, ...(namespace === undefined ? {} : { namespace }) }));
  }

  list<T>(question: Question): Promise<Read<readonly T[]>> {
    return read(question.kind, this.kubectl.list<T>(question));
  }

  grants(daemonSet: DaemonSet | undefined, nri: DaemonSet | undefined): Promise<Snapshot["grants"]> {
    // Another chart grants what its pods need.
    const wanted = daemonSet && isOurs(daemonSet) ? requiredGrants(daemonSet, this.namespace, nri) : [];
    return Promise.all(
      wanted.map(async (grant) => {
        const { name = "", namespace } = grant.metadata;
        return { wanted: grant, found: await this.get<Grant>(kinds[grant.kind] ?? "", name, namespace) };
      }),
    );
  }

  async logs(pods: readonly CheckedPod[]): Promise<Pick<Snapshot, "warnings" | "chainings">> {
    const wanted = unreadyFirst(pods).slice(0, MOST_LOGS);
    const logs = await Promise.all(
      wanted.map(async (pod) => {
        const { name = "" } = pod.metadata;
        const args = ["logs", name, `--namespace=${this.namespace}`, `--container=${mainContainer(pod)}`];
        const logOf = async (part: string) => known(await read("pods/log", this.kubectl.run(...args, part))) ?? "";
        if (!isReady(pod)) return { name, warning: lastTrouble(await logOf(TAIL)), chaining: undefined };
        const [head, recent] = await Promise.all([logOf(HEAD), logOf(RECENT)]);
        return { name, warning: unreachedWarning(recent), chaining: chainingIn(head) };
      }),
    );
    const byName = (of: "warning" | "chaining") =>
      new Map(logs.flatMap(({ name, [of]: line }) => (line === undefined ? [] : [[name, line] as const])));
    return { warnings: byName("warning"), chainings: byName("chaining") };
  }

  refusals(name: string): Promise<Read<readonly Event[]>> {
    const fieldSelector = `involvedObject.kind=DaemonSet,involvedObject.name=${name},reason=FailedCreate`;
    return this.list<Event>({ kind: "events", namespace: this.namespace, fieldSelector });
  }
}

/** Reads everything that the checks need. A part that cannot be read is noted, and reading continues. */
export async function takeSnapshot(kubectl: Kubectl, namespace: string): Promise<Snapshot> {
  const reader = new Reader(kubectl, namespace);
  const selector = `${SELECTOR.key}=${SELECTOR.value}`;
  const everywhere = true;
  const ownPods = `${SELECTOR.key} in (${OWN_PODS.join(",")})`;
  const { operators, ...parts } = await all({
    namespaceObject: reader.get<Named>("namespace", namespace),
    configMap: reader.get<ConfigMapObject>("configmap", CONFIG_MAP, namespace),
    daemonSet: reader.get<DaemonSet>("daemonset", NAME, namespace),
    daemonSets: reader.list<DaemonSet>({ kind: "daemonsets", everywhere, selector }),
    nri: reader.get<DaemonSet>("daemonset", NRI_NAME, namespace),
    pods: reader.list<CheckedPod>({ kind: "pods", namespace, selector: ownPods }),
    nodes: reader.list<NodeObject>({ kind: "nodes" }),
    refusals: reader.refusals(NAME),
    pending: reader.list<CheckedPod>({ kind: "pods", everywhere, fieldSelector: "status.phase=Pending" }),
    running: reader.list<CheckedPod>({ kind: "pods", everywhere, fieldSelector: "status.phase=Running" }),
    namespaces: reader.list<Named>({ kind: "namespaces" }),
    sandboxFailures: reader.list<Event>({ kind: "events", everywhere, fieldSelector: "reason=FailedCreatePodSandBox" }),
    webhook: reader.get<WebhookConfiguration>("mutatingwebhookconfigurations", MULTUS_NAME),
    operators: reader.list<Deployment>({
      kind: "deployments",
      everywhere,
      fieldSelector: "metadata.name=linkerd-multus",
    }),
    definitions: reader.get<Named>("customresourcedefinitions", "network-attachment-definitions.k8s.cni.cncf.io"),
  });
  const [nri, none] = [known(parts.nri), { value: [] } as Read<readonly Event[]>];
  const [grants, logs, nriRefusals] = await Promise.all([
    reader.grants(known(parts.daemonSet), nri),
    reader.logs(known(parts.pods) ?? []),
    nri === undefined ? none : reader.refusals(NRI_NAME),
  ]);
  const operator = "value" in operators ? { value: operators.value[0] } : operators;
  return { namespace, ...parts, ...logs, nriRefusals, grants, operator };
}
