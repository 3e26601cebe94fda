import type {
  ConfigMapObject,
  EventObject,
  KubernetesObject,
  LeaseObject,
  NamespaceObject,
  NodeObject,
  PodObject,
  SecretObject,
  ServiceObject,
} from "./types";

/** A resource of the API; `T` has the fields that are read. */
export interface Resource<T> {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Its name in paths. */
  readonly plural: string;
  /** Only for the type; values do not have it. */
  readonly object?: T;
}

/** @param apiVersion `v1` or `GROUP/VERSION` */
export function resource<T>(apiVersion: string, kind: string, plural: string): Resource<T> {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  return { group, version, kind, plural };
}

/** The resources of this project. */
export const resources = {
  pods: resource<PodObject>("v1", "Pod", "pods"),
  namespaces: resource<NamespaceObject>("v1", "Namespace", "namespaces"),
  nodes: resource<NodeObject>("v1", "Node", "nodes"),
  services: resource<ServiceObject>("v1", "Service", "services"),
  secrets: resource<SecretObject>("v1", "Secret", "secrets"),
  configMaps: resource<ConfigMapObject>("v1", "ConfigMap", "configmaps"),
  daemonSets: resource<KubernetesObject>("apps/v1", "DaemonSet", "daemonsets"),
  leases: resource<LeaseObject>("coordination.k8s.io/v1", "Lease", "leases"),
  events: resource<EventObject>("events.k8s.io/v1", "Event", "events"),
} as const;

export function apiVersionOf({ group, version }: Pick<Resource<unknown>, "group" | "version">): string {
  return group === "" ? version : `${group}/${version}`;
}

/** One object of a resource; without a name all of them. */
interface Place {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

/** Its path in the API, without a query. */
export function pathOf(resource: Resource<unknown>, { namespace, name }: Place = {}): string {
  const root = resource.group === "" ? "/api" : `/apis/${resource.group}`;
  const within = namespace === undefined ? [] : ["namespaces", namespace];
  const parts = [resource.version, ...within, resource.plural, name];
  return `${root}/${parts
    .filter((part) => part !== undefined)
    .map(encodeURIComponent)
    .join("/")}`;
}
