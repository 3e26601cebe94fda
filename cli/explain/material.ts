import type { Pod } from "kubernetes-types/core/v1";
import { type Document, parseAllDocuments } from "yaml";
import { CONFIG_MAP } from "../../cni/contract";
import { isObject } from "../../cni/json";
import type { NamespaceObject, ObjectMeta, ServiceObject } from "../../kubernetes/types";
import { type DaemonSet, NAME, type Sent } from "../check/objects";
import type { ConfigMapObject } from "../configuration";
import { YAML } from "../yaml";

/** A pod of the cluster or of a file. */
export type PodManifest = Sent<Pod>;

/** The objects that explanations are made from. */
export interface Material {
  readonly pods: readonly PodManifest[];
  readonly namespaces: readonly NamespaceObject[];
  /** ConfigMaps with the plugin's name. */
  readonly configMaps: readonly ConfigMapObject[];
  /** The service `kubernetes` in the namespace `default`. */
  readonly apiServer?: ServiceObject;
  /** DaemonSets with the installer's name. */
  readonly daemonSets: readonly DaemonSet[];
}

interface Manifest {
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

function textsOf(manifest: Manifest, field: "annotations" | "labels"): void {
  const { kind, metadata } = manifest;
  for (const [key, value] of Object.entries(metadata[field] ?? {})) {
    if (typeof value === "string") continue;
    const where = `${kind} ${metadata.name}: metadata.${field}["${key}"]`;
    throw new Error(`${where}: ${JSON.stringify(value)} is not text: put it in quotes`);
  }
}

/** A value without nulls: YAML reads empty values as null, and Kubernetes treats null as absent. */
function withoutNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((item) => item !== null).map(withoutNull);
  if (!isObject(value)) return value;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(members.map(([name, member]) => [name, withoutNull(member)]));
}

function objectsOf(read: unknown, from: string): readonly Manifest[] {
  if (read === null || read === undefined) return [];
  if (!isObject(read)) throw new Error(`${from}: contains something that is not a Kubernetes object`);
  const { kind, metadata, items } = read as Record<string, unknown>;
  if (typeof kind !== "string") throw new Error(`${from}: holds an object without a kind`);
  if (kind.endsWith("List") && Array.isArray(items)) {
    return items.flatMap((item) => objectsOf({ kind: kind.slice(0, -4), ...(item as object) }, from));
  }
  const made = { ...read, kind, metadata: isObject(metadata) ? metadata : {} } as Manifest;
  textsOf(made, "annotations");
  textsOf(made, "labels");
  return [withoutNull(made) as Manifest];
}

function contentOf(document: Document, from: string): unknown {
  const [error] = document.errors;
  if (error !== undefined) throw new Error(`${from}: ${error.message.split("\n")[0]}`);
  return document.toJS();
}

/**
 * The objects of a file. JSON is parsed as JSON, since parsing a whole cluster as YAML needs a multiple of its size in
 * memory.
 */
function contentsOf(text: string, from: string): readonly unknown[] {
  try {
    if (text.trimStart().startsWith("{")) return [JSON.parse(text)];
  } catch {
    // YAML flow style, or several documents.
  }
  const documents = parseAllDocuments(text, YAML) as readonly Document[];
  return documents.map((document) => contentOf(document, from));
}

/** Sorts objects by their role in explanations. */
function materialOf(objects: readonly Manifest[]): Material {
  const of = <T>(kind: string) =>
    objects.filter((object) => object.kind === kind) as readonly unknown[] as readonly T[];
  const isApiServer = ({ metadata }: ServiceObject) =>
    metadata?.namespace === "default" && metadata.name === "kubernetes";
  const apiServer = of<ServiceObject>("Service").find(isApiServer);
  return {
    pods: of<PodManifest>("Pod"),
    namespaces: of<NamespaceObject>("Namespace"),
    configMaps: of<ConfigMapObject>("ConfigMap").filter(({ metadata }) => metadata?.name === CONFIG_MAP),
    daemonSets: of<DaemonSet>("DaemonSet").filter(({ metadata }) => metadata.name === NAME),
    ...(apiServer === undefined ? {} : { apiServer }),
  };
}

/**
 * Reads YAML documents or JSON: single objects, and lists as kubectl prints them. @param from the source, for messages
 * @throws if it cannot be read, or contains no pod
 */
export function readMaterial(text: string, from: string): Material {
  const objects = contentsOf(text, from).flatMap((content) => objectsOf(content, from));
  const material = materialOf(objects);
  if (material.pods.length > 0) return material;
  const kinds = [...new Set(objects.map(({ kind }) => kind))].join(", ");
  throw new Error(`${from}: holds no Pod${kinds === "" ? "" : `, but ${kinds}`}`);
}
