import { Annotation, ENABLED, INJECT_MODES, NetworkDefinition } from "../../../cni/contract";
import { MAX_ID } from "../../../cni/ids";
import { isControlPlane, PROXY } from "../../../cni/pod";
import { base64 } from "../../../host/base64";
import type { Log } from "../../../process/log";
import { utf8 } from "../../../system/bytes";
import { HttpError } from "../../../system/http/server";
import { withNetwork } from "./networks";

const API_VERSION = "admission.k8s.io/v1";
const KIND = "AdmissionReview";

/** The document cannot be answered as a review; the message says where and why. */
const malformed = (problem: string) => new HttpError(400, problem);

type Operation = "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
const OPERATIONS: ReadonlySet<unknown> = new Set<Operation>(["CREATE", "UPDATE", "DELETE", "CONNECT"]);

/** A JSON object, which knows its place in the document. Its members may be absent or null, as in Kubernetes' API. */
class Fields {
  private constructor(
    private readonly members: Readonly<Record<string, unknown>>,
    private readonly path: string,
  ) {}

  /** @throws HttpError if the value is not an object */
  static of(value: unknown, path: string): Fields {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return new Fields({ ...value }, path);
    throw malformed(`${path || "the document"} is not an object`);
  }

  value(name: string): unknown {
    return this.members[name] ?? undefined;
  }

  /** @throws HttpError */
  refuse(name: string, problem: string): never {
    throw malformed(`${this.at(name)} ${problem}`);
  }

  object(name: string): Fields {
    return Fields.of(this.value(name), this.at(name));
  }

  optional(name: string): Fields | undefined {
    return this.value(name) === undefined ? undefined : this.object(name);
  }

  list(name: string): readonly Fields[] {
    const list = this.value(name) ?? [];
    if (!Array.isArray(list)) return this.refuse(name, "is not a list");
    return list.map((each, at) => Fields.of(each, `${this.at(name)}.${at}`));
  }

  text(name: string): string | undefined {
    const text = this.value(name);
    return text === undefined || typeof text === "string" ? text : this.refuse(name, "is not a string");
  }

  /** All members. */
  texts(): Readonly<Record<string, string>> {
    for (const [name, text] of Object.entries(this.members)) {
      if (typeof text !== "string") this.refuse(name, "is not a string");
    }
    return this.members as Readonly<Record<string, string>>;
  }

  private at(name: string): string {
    return this.path === "" ? name : `${this.path}.${name}`;
  }
}

/** Kubernetes allows a pod 256 KiB of annotations; its names and the uid are small. */
const MOST_KEPT_KIB = 257;

/** What answering a review needs of its document, which takes much more memory. */
export interface Review {
  readonly uid: string;
  /** Undefined if there is nothing to decide. */
  readonly subject?: Subject | undefined;
}

/** A pod to decide about. */
interface Subject {
  readonly namespace: string;
  /** Its name, or the beginning of the name that it will get. */
  readonly name: string;
  readonly operation: string;
  readonly dryRun: boolean;
  /** The pod's proxy already has its user, which an annotation cannot change. */
  readonly hasProxyUser: boolean;
  /** The annotations that decide; undefined if the pod has no annotations. */
  readonly annotations: DecisiveAnnotations | undefined;
  readonly isControlPlane: boolean;
}

interface ReviewDeps {
  /** @throws if the namespace cannot be read */
  readonly namespace: (name: string) => Promise<PodNamespace>;
  readonly options: AnnotateOptions;
  readonly log: Log;
}

/** The response of a review. */
export interface AdmissionResponse {
  readonly uid: string;
  readonly allowed: true;
  readonly patchType?: "JSONPatch";
  /** The patch as JSON in base64. */
  readonly patch?: string;
  readonly warnings?: readonly string[];
}

/** @throws HttpError */
function subjectOf(request: Fields): Subject | undefined {
  const operation = request.value("operation");
  if (!OPERATIONS.has(operation)) request.refuse("operation", "is not an operation");
  const reviewed = request.object("resource");
  const [resource, group] = [reviewed.text("resource"), reviewed.text("group")];
  if (resource !== "pods" || group) {
    const name = [resource, group].filter(Boolean).join(".");
    throw malformed(`request.resource is ${name}: this webhook reviews pods`);
  }
  const dryRun = request.value("dryRun") ?? false;
  if (typeof dryRun !== "boolean") return request.refuse("dryRun", "is not true or false");
  if (request.text("subResource") || (operation !== "CREATE" && operation !== "UPDATE")) return undefined;
  const pod = request.object("object");
  if (pod.value("kind") !== "Pod") pod.refuse("kind", "is not Pod");
  const [metadata, spec] = [pod.optional("metadata"), pod.optional("spec")];
  // Once the pod is on a node, annotations have no effect.
  if (operation === "UPDATE" && (spec?.text("nodeName") || metadata?.text("deletionTimestamp"))) return undefined;
  const containers = [...(spec?.list("containers") ?? []), ...(spec?.list("initContainers") ?? [])];
  const annotations = metadata?.optional("annotations")?.texts();
  const namespace = request.text("namespace") || request.refuse("namespace", "is empty");
  return {
    namespace,
    name: metadata?.text("name") || metadata?.text("generateName") || "",
    operation,
    dryRun,
    // Injectors run when a pod is created, so the proxy's user is fixed at an update.
    hasProxyUser: operation === "UPDATE" && containers.some((container) => container.text("name") === PROXY),
    annotations: annotations && decisive(annotations),
    isControlPlane: isControlPlane({ labels: metadata?.optional("labels")?.texts() ?? {} }),
  };
}

/** The characters that a review keeps. */
function sizeOf({ uid, subject }: Review): number {
  const texts = [uid, subject?.namespace, subject?.name, ...Object.values(subject?.annotations ?? {})];
  return texts.reduce((sum, text = "") => sum + text.length, 0);
}

/** The review in an AdmissionReview's document, which it does not refer to. @throws HttpError */
export function parseReview(document: unknown): Review {
  const fields = Fields.of(document, "");
  if (fields.value("apiVersion") !== API_VERSION) fields.refuse("apiVersion", `is not ${API_VERSION}`);
  if (fields.value("kind") !== KIND) fields.refuse("kind", `is not ${KIND}`);
  const request = fields.object("request");
  const uid = request.text("uid") || request.refuse("uid", "is empty");
  const review = { uid, subject: subjectOf(request) };
  if (sizeOf(review) > MOST_KEPT_KIB * 1024) {
    throw malformed(`the names and annotations in request are larger than ${MOST_KEPT_KIB} KiB`);
  }
  return review;
}

type Annotations = Readonly<Record<string, string>>;

/** The annotations of a pod that decide. */
const DECISIVE = [
  Annotation.multus,
  Annotation.inject,
  Annotation.networks,
  Annotation.proxyUid,
  Annotation.mirror,
] as const;
type DecisiveName = (typeof DECISIVE)[number];
type DecisiveAnnotations = Readonly<Partial<Record<DecisiveName, string>>>;

/** Copies what decides. */
const decisive = (annotations: Annotations): DecisiveAnnotations =>
  Object.fromEntries(DECISIVE.flatMap((name) => (annotations[name] === undefined ? [] : [[name, annotations[name]]])));

/** The namespace of the pod. */
export interface PodNamespace {
  readonly name: string;
  readonly annotations: Annotations;
}

interface AnnotateOptions {
  /** Linkerd's control-plane namespace. */
  readonly linkerdNamespace: string;
  /** Name of the namespaces' annotation with the range of user ids. */
  readonly uidRangeAnnotation: string;
  /** Offset from the range's first user id. */
  readonly proxyUidOffset: number;
}

/** The result of a pod's review. */
interface Verdict {
  /** The annotations to add. */
  readonly added: Annotations;
  /** Warnings for the client that sent the request. */
  readonly warnings: readonly string[];
  /** Lines for the log. */
  readonly notes: readonly string[];
}

const UNCHANGED: Verdict = { added: {}, warnings: [], notes: [] };

/** One step of a JSON pointer. */
const pointerStep = (name: string) => name.replaceAll("~", "~0").replaceAll("/", "~1");

/** User ids that a namespace's pods may run as. */
interface UidRange {
  readonly first: number;
  readonly last: number;
}

const BLOCK = /^(?<first>\d{1,10})(?:\/(?<size>\d{1,10})|-(?<last>\d{1,10}))$/;

/** Reads `FIRST/SIZE` or `FIRST-LAST`, as OpenShift does; undefined if it is neither. */
function parseUidRange(text: string): UidRange | undefined {
  const { first: low, size, last: high } = BLOCK.exec(text.trim())?.groups ?? {};
  if (low === undefined) return undefined;
  const first = Number(low);
  const last = size === undefined ? Number(high) : first + Number(size) - 1;
  return first <= last && last <= MAX_ID ? { first, last } : undefined;
}

/** Makes Multus call the plugin. */
function attached(networks: string, podNamespace: string): Verdict {
  const extended = withNetwork(networks, NetworkDefinition.name, podNamespace);
  if (extended !== undefined) {
    return { ...UNCHANGED, added: extended === networks ? {} : { [Annotation.networks]: extended } };
  }
  const problem = `${Annotation.networks} is neither a list of names nor a JSON array; left as it is, without ${NetworkDefinition.name}`;
  return { added: {}, warnings: [problem], notes: [problem] };
}

/** Gives the proxy a user that its namespace allows. */
function proxyUser({ name, annotations }: PodNamespace, options: AnnotateOptions): Verdict {
  const { uidRangeAnnotation, proxyUidOffset } = options;
  const allowed = annotations[uidRangeAnnotation];
  if (!allowed) return UNCHANGED;
  const range = parseUidRange(allowed);
  const where = `${uidRangeAnnotation} on namespace ${name}: ${JSON.stringify(allowed)}`;
  if (range === undefined) {
    return { ...UNCHANGED, notes: [`${where} is not FIRST/SIZE; ${Annotation.proxyUid} is not set`] };
  }
  const wanted = range.first + proxyUidOffset;
  const fits = wanted >= range.first && wanted <= range.last;
  return {
    added: { [Annotation.proxyUid]: String(fits ? wanted : range.first) },
    warnings: [],
    notes: fits ? [] : [`${where} does not hold ${wanted}; ${Annotation.proxyUid} is ${range.first}`],
  };
}

/** Decides which annotations to add to a pod that has not started yet. No I/O. */
function annotate(subject: Subject, namespace: PodNamespace, options: AnnotateOptions): Verdict {
  const { annotations: own = {}, hasProxyUser } = subject;
  // A static pod has no injected proxy, whatever its mirror says.
  if (own[Annotation.mirror] !== undefined) return UNCHANGED;
  // An empty value counts as absent.
  const inherited = [Annotation.multus, Annotation.inject].flatMap((name) => {
    const value = namespace.annotations[name];
    return own[name] || !value ? [] : [[name, value]];
  });
  const added: Annotations = Object.fromEntries(inherited);
  const value = (name: DecisiveName) => added[name] ?? own[name] ?? "";
  const isMeshed = value(Annotation.multus) === ENABLED && INJECT_MODES.includes(value(Annotation.inject));
  const isControlPlanes = namespace.name === options.linkerdNamespace && subject.isControlPlane;
  if (!isMeshed && !isControlPlanes) return { ...UNCHANGED, added };
  const networks = attached(value(Annotation.networks), namespace.name);
  const hasUser = hasProxyUser || own[Annotation.proxyUid] || namespace.annotations[Annotation.proxyUid];
  const user = isControlPlanes || hasUser ? UNCHANGED : proxyUser(namespace, options);
  return {
    added: { ...added, ...networks.added, ...user.added },
    warnings: networks.warnings,
    notes: [...networks.notes, ...user.notes],
  };
}

/** The smallest JSON patch (RFC 6902) that adds annotations. */
function additions(before: DecisiveAnnotations | undefined, added: Annotations) {
  const path = "/metadata/annotations";
  if (Object.keys(added).length === 0) return [];
  if (before === undefined) return [{ op: "add", path, value: added }];
  return Object.entries(added).map(([name, value]) => ({ op: "add", path: `${path}/${pointerStep(name)}`, value }));
}

/** Answers a review of a pod, without side effects. @throws what `namespace` throws */
export async function answerReview({ uid, subject }: Review, deps: ReviewDeps): Promise<AdmissionResponse> {
  if (subject === undefined) return { uid, allowed: true };
  const place = await deps.namespace(subject.namespace);
  const { added, warnings, notes } = annotate(subject, place, deps.options);
  const patch = additions(subject.annotations, added);
  const about = { namespace: place.name, pod: subject.name, operation: subject.operation, dryRun: subject.dryRun };
  for (const note of notes) deps.log.warn(note, about);
  if (patch.length > 0) deps.log.info("annotates a pod", about);
  return {
    uid,
    allowed: true,
    ...(warnings.length > 0 ? { warnings } : {}),
    ...(patch.length > 0 ? { patchType: "JSONPatch", patch: base64(utf8(JSON.stringify(patch))) } : {}),
  };
}

/** The answer's document. */
export const reviewOf = (response: AdmissionResponse) => ({ apiVersion: API_VERSION, kind: KIND, response });
