/** Objects of the API server, reduced to what decides about a pod. What is not the object that was asked for is an error. */
import { Annotation } from "./contract";
import type { Namespace } from "./decide";
import type { PodName } from "./environment";
import { CniError, ErrorCode, quoted } from "./errors";
import { isObject, type Json, type JsonObject, kindOf } from "./json";
import type { Pod } from "./pod";

type Texts = Readonly<Record<string, string>>;

/** An answer of the API server, read member by member. */
class Answer {
  private constructor(
    private readonly what: string,
    readonly value: JsonObject,
  ) {}

  /** @throws CniError 11 if it is not the object that was asked for */
  static of(answer: unknown, kind: "Pod" | "Namespace" | "Service", name: string, namespace?: string): Answer {
    const what = `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
    const found = new Answer(what, isObject(answer) ? answer : {});
    if (!isObject(answer)) return found.refuse(`it is ${answer === undefined ? "missing" : kindOf(answer)}`);
    if (answer["kind"] !== kind) return found.refuse(`its kind is ${shown(answer["kind"])}`);
    const given = found.object(answer["metadata"], "metadata")["name"];
    if ((given ?? "") !== name) return found.refuse(`its metadata.name is ${shown(given)}`);
    return found;
  }

  /** A map of texts in the metadata. */
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

  /** A list of objects; null is an empty one. */
  objects(list: unknown, at: string): readonly JsonObject[] {
    if (list === undefined || list === null) return [];
    if (!Array.isArray(list)) return this.refuse(`its ${at} is ${shown(list)}`);
    return list.map((each: unknown, index) =>
      isObject(each) ? each : this.refuse(`its ${at}[${index}] is ${shown(each)}`),
    );
  }

  /** A port, or none if it is absent. */
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
 * Why the object is another pod's: a pod of a StatefulSet is deleted, and another is created under its name, while the
 * first one's sandbox is made. To a kubelet the UID of a pod from a file is what its mirror has in an annotation.
 */
function otherPod(uid: string | undefined, found: unknown, mirrorOf: string | undefined): string | undefined {
  if (uid === undefined || found === undefined || found === uid || mirrorOf === uid) return undefined;
  return `its metadata.uid is ${shown(found)}, this pod's ${quoted(uid)}: another has taken this pod's name`;
}

/**
 * A pod as the API server has it. An answer that is something else must not pass for a pod without a proxy.
 * @throws CniError 11
 */
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

/** A namespace as the API server has it. @throws CniError 11 if the answer is none */
export function namespaceFromObject(name: string, answer: unknown): Namespace {
  return { name, annotations: Answer.of(answer, "Namespace", name).texts("annotations") };
}

/**
 * The ports of the API server's Service, `default/kubernetes`, and those behind it that are numbers; undefined if it
 * says none.
 * @throws CniError 11 if the answer is not that Service
 */
export function apiServerPorts(answer: unknown): readonly number[] | undefined {
  const found = Answer.of(answer, "Service", "kubernetes", "default");
  const ports = found.objects(found.spec["ports"], "spec.ports").flatMap(({ port, targetPort }, index) => {
    const at = `spec.ports[${index}]`;
    // A name stands for whatever each endpoint calls so.
    const target = typeof targetPort === "string" ? undefined : targetPort;
    return [...found.port(port, `${at}.port`), ...found.port(target, `${at}.targetPort`)];
  });
  return ports.length > 0 ? ports : undefined;
}

/** Whether a decision may depend on an annotation or a label. */
const isRead = (key: string) => key.includes("linkerd.io/") || key === Annotation.mirror;

/** What is not of the type that it should be stays as it is, for the reader to refuse. */
const ofObject = (value: Json | undefined, reduce: (object: JsonObject) => JsonObject) =>
  isObject(value) ? reduce(value) : value;
const ofList = (value: Json | undefined, reduce: (object: JsonObject) => JsonObject) =>
  Array.isArray(value) ? value.map((each: Json) => ofObject(each, reduce) ?? null) : value;

const readTexts = (texts: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(texts).filter(([key, value]) => isRead(key) || typeof value !== "string"));
const onlyName = ({ name }: JsonObject): JsonObject => ({ name });

/**
 * An object of the API server without what the functions above do not read: they take it for the whole one. A member
 * that is undefined is left out of JSON.
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
