/**
 * Objects of the API server, reduced to the fields for decisions about a pod. An answer that is not the requested
 * object is an error.
 */
import { Annotation } from "./contract";
import type { Namespace } from "./decide";
import type { PodName } from "./environment";
import { CniError, ErrorCode, quoted } from "./errors";
import { isObject, type Json, type JsonObject, kindOf } from "./json";
import type { Pod } from "./pod";

type Texts = Readonly<Record<string, string>>;

/** An answer of the API server, read field by field. */
class Answer {
  private constructor(
    private readonly what: string,
    readonly value: JsonObject,
  ) {}

  /** @throws CniError 11 if it is not the requested object */
  static of(answer: unknown, kind: "Pod" | "Namespace" | "Service", name: string, namespace?: string): Answer {
    const what = `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
    const found = new Answer(what, isObject(answer) ? answer : {});
    if (!isObject(answer)) return found.refuse(`it is ${answer === undefined ? "missing" : kindOf(answer)}`);
    if (answer["kind"] !== kind) return found.refuse(`its kind is ${shown(answer["kind"])}`);
    const given = found.object(answer["metadata"], "metadata")["name"];
    if ((given ?? "") !== name) return found.refuse(`its metadata.name is ${shown(given)}`);
    return found;
  }

  /** A string map of the metadata. */
  texts(field: "annotations" | "labels"): Texts {
    const texts = this.object(this.object(this.value["metadata"], "metadata")[field], `metadata.${field}`);
    for (const [key, value] of Object.entries(texts)) {
      if (typeof value !== "string") return this.refuse(`its metadata.${field}["${key}"] is ${shown(value)}`);
    }
    return texts as Texts;
  }

  get uid(): unknown {
    return this.object(this.value["metadata"], "metadata")["uid"];
  }

  get spec(): JsonObject {
    return this.object(this.value["spec"], "spec");
  }

  /** The names of a list of objects. */
  names(list: unknown, at: string): readonly string[] {
    return this.objects(list, at).map((each, index) => {
      const name = each["name"];
      return typeof name === "string" ? name : this.refuse(`its ${at}[${index}].name is ${shown(name)}`);
    });
  }

  /** A list of objects; null counts as empty. */
  objects(list: unknown, at: string): readonly JsonObject[] {
    if (list === undefined || list === null) return [];
    if (!Array.isArray(list)) return this.refuse(`its ${at} is ${shown(list)}`);
    return list.map((each: unknown, index) =>
      isObject(each) ? each : this.refuse(`its ${at}[${index}] is ${shown(each)}`),
    );
  }

  /** A port; undefined if absent. */
  port(value: unknown, at: string): readonly number[] {
    if (value === undefined || value === null) return [];
    const isPort = typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 0xffff;
    return isPort ? [value] : this.refuse(`its ${at} is ${shown(value)}`);
  }

  private object(value: unknown, at: string): JsonObject {
    if (value === undefined || value === null) return {};
    return isObject(value) ? value : this.refuse(`its ${at} is ${shown(value)}`);
  }

  refuse(because: string): never {
    throw new CniError(ErrorCode.tryAgainLater, `the API server's answer is not ${this.what}: ${because}`);
  }
}

function shown(value: unknown): string {
  if (value === undefined) return "missing";
  return typeof value === "string" ? quoted(value) : kindOf(value);
}

/**
 * Why the object is another pod's: a StatefulSet may delete a pod and create another with the same name while the first
 * one's sandbox is created. For a static pod, the kubelet's UID is in an annotation of its mirror.
 */
function otherPod(uid: string | undefined, found: unknown, mirrorOf: string | undefined): string | undefined {
  if (uid === undefined || found === undefined || found === uid || mirrorOf === uid) return undefined;
  return `its metadata.uid is ${shown(found)}, this pod's ${quoted(uid)}: another has taken this pod's name`;
}

/** A pod of the API server. Another answer must not count as a pod without a proxy. @throws CniError 11 */
export function podFromObject({ namespace, name, uid }: PodName, answer: unknown): Pod {
  const found = Answer.of(answer, "Pod", name, namespace);
  const annotations = found.texts("annotations");
  const other = otherPod(uid, found.uid, annotations[Annotation.mirror]);
  if (other !== undefined) return found.refuse(other);
  const { containers, initContainers } = found.spec;
  if (!Array.isArray(containers)) return found.refuse(`its spec.containers is ${shown(containers)}`);
  return {
    namespace,
    name,
    annotations,
    labels: found.texts("labels"),
    containers: found.names(containers, "spec.containers"),
    initContainers: found.names(initContainers, "spec.initContainers"),
  };
}

/** A namespace of the API server. @throws CniError 11 if the answer is not one */
export function namespaceFromObject(name: string, answer: unknown): Namespace {
  return { name, annotations: Answer.of(answer, "Namespace", name).texts("annotations") };
}

/**
 * The ports and numeric target ports of the API server's Service, `default/kubernetes`; undefined if it has none.
 * @throws CniError 11 if the answer is not that Service
 */
export function apiServerPorts(answer: unknown): readonly number[] | undefined {
  const found = Answer.of(answer, "Service", "kubernetes", "default");
  const ports = found.objects(found.spec["ports"], "spec.ports").flatMap(({ port, targetPort }, index) => {
    const at = `spec.ports[${index}]`;
    // A named target port may differ between endpoints.
    const target = typeof targetPort === "string" ? undefined : targetPort;
    return [...found.port(port, `${at}.port`), ...found.port(target, `${at}.targetPort`)];
  });
  return ports.length > 0 ? ports : undefined;
}

/** Whether decisions may depend on an annotation or a label. */
const isRead = (key: string) => key.includes("linkerd.io/") || key === Annotation.mirror;

/** Values of a wrong type stay, so that the reader refuses them. */
const ofObject = (value: Json | undefined, reduce: (object: JsonObject) => JsonObject) =>
  isObject(value) ? reduce(value) : value;
const ofList = (value: Json | undefined, reduce: (object: JsonObject) => JsonObject) =>
  Array.isArray(value) ? value.map((each: Json) => ofObject(each, reduce) ?? null) : value;

const readTexts = (texts: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(texts).filter(([key, value]) => isRead(key) || typeof value !== "string"));
const onlyName = ({ name }: JsonObject): JsonObject => ({ name });

/**
 * An object of the API server reduced to the fields that the functions above read. JSON leaves undefined fields out.
 */
export function reducedObject(object: Json): Json {
  const reduce = ({ kind, metadata, spec }: JsonObject): JsonObject => ({
    kind,
    metadata: ofObject(metadata, ({ name, uid, annotations, labels }) => ({
      name,
      uid,
      annotations: ofObject(annotations, readTexts),
      labels: ofObject(labels, readTexts),
    })),
    spec: ofObject(spec, ({ containers, initContainers, ports }) => ({
      containers: ofList(containers, onlyName),
      initContainers: ofList(initContainers, onlyName),
      ports: ofList(ports, ({ port, targetPort }) => ({ port, targetPort })),
    })),
  });
  return ofObject(object, reduce) ?? null;
}
