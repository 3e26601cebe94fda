import { Annotation, NetworkDefinition } from "../../../cni/contract";
import { MAX_ID } from "../../../cni/ids";
import { isControlPlane, PROXY } from "../../../cni/pod";
import { base64 } from "../../../host/base64";
import type { Log } from "../../../process/log";
import { utf8 } from "../../../system/bytes";
import { ENABLED } from "../definitions/plan-definition";
import { NetworksError, withNetwork } from "./networks";

const API_VERSION = "admission.k8s.io/v1";
const KIND = "AdmissionReview";

/** The document cannot be answered as a review; the message says where and why. */
export class ReviewError extends Error {
  override readonly name = "ReviewError";
}

type Operation = "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
const OPERATIONS: ReadonlySet<unknown> = new Set<Operation>(["CREATE", "UPDATE", "DELETE", "CONNECT"]);

/** A JSON object, which knows its place in the document. Its members may be absent or null, as in Kubernetes' API. */
class Fields {
  private constructor(
    private readonly members: Readonly<Record<string, unknown>>,
    private readonly path: string,
  ) {}

  /** @throws ReviewError if the value is not an object */
  static of(value: unknown, path: string): Fields {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return new Fields({ ...value }, path);
    throw new ReviewError(`${path || "the document"} is not an object`);
  }

  value(name: string): unknown {
    return this.members[name] ?? undefined;
  }

  /** @throws ReviewError */
  refuse(name: string, problem: string): never {
    throw new ReviewError(`${this.at(name)} ${problem}`);
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
  readonly hasProxyUser: boolean;
  readonly pod: DecisiveFields;
}

export interface ReviewDeps {
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

/** @throws ReviewError */
function subjectOf(request: Fields): Subject | undefined {
  const operation = request.value("operation");
  if (!OPERATIONS.has(operation)) request.refuse("operation", "is not an operation");
  const reviewed = request.object("resource");
  const [resource, group] = [reviewed.text("resource"), reviewed.text("group")];
  if (resource !== "pods" || group) {
    const name = [resource, group].filter(Boolean).join(".");
    throw new ReviewError(`request.resource is ${name}: this webhook reviews pods`);
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
  const [annotations, labels] = [metadata?.optional("annotations")?.texts(), metadata?.optional("labels")?.texts()];
  const namespace = request.text("namespace") || request.refuse("namespace", "is empty");
  return {
    namespace,
    name: metadata?.text("name") || metadata?.text("generateName") || "",
    operation,
    dryRun,
    // Injectors run when a pod is created, so the proxy's user is fixed at an update.
    hasProxyUser: operation === "UPDATE" && containers.some((container) => container.text("name") === PROXY),
    pod: decisiveFields(metadata && { annotations, labels }),
  };
}

/** The characters that a review keeps. */
function sizeOf({ uid, subject }: Review): number {
  const texts = [uid, subject?.namespace, subject?.name, ...Object.values(subject?.pod.metadata?.annotations ?? {})];
  return texts.reduce((sum, text = "") => sum + text.length, 0);
}

/** The review in an AdmissionReview's document, which it does not refer to. @throws ReviewError */
export function parseReview(document: unknown): Review {
  const fields = Fields.of(document, "");
  if (fields.value("apiVersion") !== API_VERSION) fields.refuse("apiVersion", `is not ${API_VERSION}`);
  if (fields.value("kind") !== KIND) fields.refuse("kind", `is not ${KIND}`);
  const request = fields.object("request");
  const uid = request.text("uid") || request.refuse("uid", "is empty");
  const review = { uid, subject: subjectOf(request) };
  if (sizeOf(review) > MOST_KEPT_KIB * 1024) {
    throw new ReviewError(`the names and annotations in request are larger than ${MOST_KEPT_KIB} KiB`);
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

/** The fields of a pod for the decision. */
interface DecisiveFields {
  readonly metadata?: { readonly annotations?: DecisiveAnnotations | undefined } | undefined;
  readonly isControlPlane: boolean;
}

interface Metadata {
  readonly annotations?: Annotations | null | undefined;
  readonly labels?: Annotations | null | undefined;
}

/** Copies what decides from a pod's metadata. */
function decisiveFields(metadata: Metadata | null | undefined): DecisiveFields {
  const { annotations, labels } = metadata ?? {};
  const present = DECISIVE.filter((name) => annotations?.[name] !== undefined);
  const kept = annotations ? Object.fromEntries(present.map((name) => [name, annotations[name]])) : undefined;
  return {
    metadata: metadata ? { annotations: kept } : undefined,
    isControlPlane: isControlPlane({ labels: labels ?? {} }),
  };
}

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
  /** The pod's proxy already has its user, which an annotation cannot change. @default false */
  readonly hasProxyUser?: boolean;
}

/** The used part of RFC 6902. */
interface Addition {
  readonly op: "add";
  readonly path: string;
  readonly value: unknown;
}
type JsonPatch = readonly Addition[];

/** One step of a JSON pointer. */
const pointerStep = (name: string) => name.replaceAll("~", "~0").replaceAll("/", "~1");

/** The result of a pod's review. */
interface Verdict {
  /** Empty if the pod does not change. */
  readonly patch: JsonPatch;
  /** Warnings for the client that sent the request. */
  readonly warnings: readonly string[];
  /** Lines for the log. */
  readonly notes: readonly string[];
}

const INJECTED = ["enabled", "ingress"];

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

/** Collects annotations to add to a pod. */
class Annotator {
  readonly added: Record<string, string> = {};
  readonly warnings: string[] = [];
  readonly notes: string[] = [];
  private readonly own: DecisiveAnnotations;
  private readonly isControlPlane: boolean;

  constructor(
    pod: DecisiveFields,
    private readonly namespace: PodNamespace,
    private readonly options: AnnotateOptions,
  ) {
    this.own = pod.metadata?.annotations ?? {};
    this.isControlPlane = namespace.name === options.linkerdNamespace && pod.isControlPlane;
  }

  run(): void {
    for (const name of [Annotation.multus, Annotation.inject] as const) this.inherit(name);
    const isMeshed = this.value(Annotation.multus) === ENABLED && INJECTED.includes(this.value(Annotation.inject));
    if (!isMeshed && !this.isControlPlane) return;
    this.attach();
    if (!this.isControlPlane && this.options.hasProxyUser !== true) this.chooseUid();
  }

  /** An empty value counts as absent. */
  private value(name: DecisiveName): string {
    return this.added[name] ?? this.own[name] ?? "";
  }

  private inherit(name: DecisiveName): void {
    const inherited = this.namespace.annotations[name];
    if (this.value(name) === "" && inherited) this.added[name] = inherited;
  }

  private attach(): void {
    const value = this.own[Annotation.networks] ?? "";
    try {
      const extended = withNetwork(value, NetworkDefinition.name, this.namespace.name);
      if (extended !== value) this.added[Annotation.networks] = extended;
    } catch (error) {
      if (!(error instanceof NetworksError)) throw error;
      const problem = `${Annotation.networks} ${error.message}; left as it is, without ${NetworkDefinition.name}`;
      this.warnings.push(problem);
      this.notes.push(problem);
    }
  }

  /** The proxy runs as a user that its namespace allows, unless an annotation sets one. */
  private chooseUid(): void {
    const { uidRangeAnnotation, proxyUidOffset } = this.options;
    const { name, annotations } = this.namespace;
    const allowed = annotations[uidRangeAnnotation];
    if (!allowed || this.value(Annotation.proxyUid) !== "" || annotations[Annotation.proxyUid]) return;
    const range = parseUidRange(allowed);
    const where = `${uidRangeAnnotation} on namespace ${name}: ${JSON.stringify(allowed)}`;
    if (range === undefined) {
      this.notes.push(`${where} is not FIRST/SIZE; ${Annotation.proxyUid} is not set`);
      return;
    }
    const wanted = range.first + proxyUidOffset;
    const fits = wanted >= range.first && wanted <= range.last;
    if (!fits) this.notes.push(`${where} does not hold ${wanted}; ${Annotation.proxyUid} is ${range.first}`);
    this.added[Annotation.proxyUid] = String(fits ? wanted : range.first);
  }
}

/** The smallest patch that adds annotations. */
function additions(pod: DecisiveFields, added: Annotations): JsonPatch {
  if (Object.keys(added).length === 0) return [];
  if (!pod.metadata) return [{ op: "add", path: "/metadata", value: { annotations: added } }];
  const path = "/metadata/annotations";
  if (!pod.metadata.annotations) return [{ op: "add", path, value: added }];
  return Object.entries(added).map(([name, value]) => ({ op: "add", path: `${path}/${pointerStep(name)}`, value }));
}

/** Decides which annotations to add to a pod that has not started yet. No I/O. */
function annotatePod(pod: DecisiveFields, namespace: PodNamespace, options: AnnotateOptions): Verdict {
  const annotator = new Annotator(pod, namespace, options);
  // A static pod has no injected proxy, whatever its mirror says.
  if (pod.metadata?.annotations?.[Annotation.mirror] === undefined) annotator.run();
  const { added, warnings, notes } = annotator;
  return { patch: additions(pod, added), warnings, notes };
}

const UNCHANGED: Verdict = { patch: [], warnings: [], notes: [] };

async function judge(subject: Subject | undefined, { namespace, options, log }: ReviewDeps): Promise<Verdict> {
  if (subject === undefined) return UNCHANGED;
  const { name, operation, dryRun, hasProxyUser, pod } = subject;
  const place = await namespace(subject.namespace);
  const verdict = annotatePod(pod, place, { ...options, hasProxyUser });
  const about = { namespace: place.name, pod: name, operation, dryRun };
  for (const note of verdict.notes) log.warn(note, about);
  if (verdict.patch.length > 0) log.info("annotates a pod", about);
  return verdict;
}

/** Answers a review of a pod, without side effects. @throws what `namespace` throws */
export async function answerReview({ uid, subject }: Review, deps: ReviewDeps): Promise<AdmissionResponse> {
  const { patch, warnings } = await judge(subject, deps);
  return {
    uid,
    allowed: true,
    ...(warnings.length > 0 ? { warnings } : {}),
    ...(patch.length > 0 ? { patchType: "JSONPatch", patch: base64(utf8(JSON.stringify(patch))) } : {}),
  };
}

/** The answer's document. */
export const reviewOf = (response: AdmissionResponse) => ({ apiVersion: API_VERSION, kind: KIND, response });
