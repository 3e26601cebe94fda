import * as z from "zod/mini";
import { PROXY } from "../../../cni/pod";
import { base64 } from "../../../host/base64";
import type { Log } from "../../../process/log";
import { utf8 } from "../../../system/bytes";
import {
  type AnnotateOptions,
  annotatePod,
  type DecisiveFields,
  decisiveFields,
  type PodNamespace,
  type Verdict,
} from "./annotate";

const API_VERSION = "admission.k8s.io/v1";
const KIND = "AdmissionReview";

/** The document cannot be answered as a review; the message says where and why. */
export class ReviewError extends Error {
  override readonly name = "ReviewError";
}

const text = z.string("is not a string");
const object = <T extends z.core.$ZodShape>(shape: T) => z.object(shape, "is not an object");
const strings = z.nullish(z.record(z.string(), text, "is not an object"));

const REVIEW = object({
  apiVersion: z.literal(API_VERSION, `is not ${API_VERSION}`),
  kind: z.literal(KIND, `is not ${KIND}`),
  request: object({
    uid: text.check(z.minLength(1, "is empty")),
    operation: z.enum(["CREATE", "UPDATE", "DELETE", "CONNECT"], "is not an operation"),
    resource: object({ group: z.nullish(text), resource: text }),
    subResource: z.nullish(text),
    namespace: z.nullish(text),
    dryRun: z.nullish(z.boolean("is not true or false")),
    object: z.optional(z.unknown()),
  }),
});
/** The request of the API server. */
type ReviewRequest = z.infer<typeof REVIEW>["request"];

const containers = z.nullish(z.array(object({ name: z.nullish(text) }), "is not a list"));

const POD = object({
  kind: z.literal("Pod", "is not Pod"),
  metadata: z.nullish(
    object({
      name: z.nullish(text),
      generateName: z.nullish(text),
      deletionTimestamp: z.nullish(text),
      annotations: strings,
      labels: strings,
    }),
  ),
  spec: z.nullish(object({ nodeName: z.nullish(text), containers, initContainers: containers })),
});
/** The checked fields of a pod. */
type ReviewedPod = z.infer<typeof POD>;

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

/** @throws ReviewError that names the first invalid field */
function parse<T extends z.ZodMiniType>(schema: T, value: unknown, at: string): z.infer<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const path = [...(at === "" ? [] : [at]), ...(issue?.path ?? []).map(String)].join(".");
  throw new ReviewError(`${path || "the document"} ${issue?.message}`);
}

/** The pod of a request. @throws ReviewError */
const parsePod = ({ object }: ReviewRequest): ReviewedPod => parse(POD, object, "request.object");

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

/** Whether the pod may not have its networks yet; once it is on a node, annotations have no effect. */
function isOpen({ operation }: ReviewRequest, { metadata, spec }: ReviewedPod): boolean {
  return operation === "CREATE" || (!spec?.nodeName && !metadata?.deletionTimestamp);
}

/** Injectors run when a pod is created, so the proxy's user is fixed at an update. */
function hasProxyUser({ operation }: ReviewRequest, { spec }: ReviewedPod): boolean {
  const containers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  return operation === "UPDATE" && containers.some(({ name }) => name === PROXY);
}

/** @throws ReviewError */
function subjectOf(request: ReviewRequest): Subject | undefined {
  const { resource, group } = request.resource;
  if (resource !== "pods" || group) {
    const name = [resource, group].filter(Boolean).join(".");
    throw new ReviewError(`request.resource is ${name}: this webhook reviews pods`);
  }
  const { operation, namespace, dryRun } = request;
  if (request.subResource || !["CREATE", "UPDATE"].includes(operation)) return undefined;
  const pod = parsePod(request);
  if (!isOpen(request, pod)) return undefined;
  if (!namespace) throw new ReviewError("request.namespace is empty");
  const { name, generateName } = pod.metadata ?? {};
  return {
    namespace,
    name: name || generateName || "",
    operation,
    dryRun: dryRun ?? false,
    hasProxyUser: hasProxyUser(request, pod),
    pod: decisiveFields(pod.metadata),
  };
}

/** The characters that a review keeps. */
function sizeOf({ uid, subject }: Review): number {
  const texts = [uid, subject?.namespace, subject?.name, ...Object.values(subject?.pod.metadata?.annotations ?? {})];
  return texts.reduce((sum, text = "") => sum + text.length, 0);
}

/** The review in an AdmissionReview's document, which it does not refer to. @throws ReviewError */
export function parseReview(document: unknown): Review {
  const { request } = parse(REVIEW, document, "");
  const review = { uid: request.uid, subject: subjectOf(request) };
  if (sizeOf(review) > MOST_KEPT_KIB * 1024) {
    throw new ReviewError(`the names and annotations in request are larger than ${MOST_KEPT_KIB} KiB`);
  }
  return review;
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
