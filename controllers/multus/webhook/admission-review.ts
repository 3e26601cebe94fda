import * as z from "zod/mini";
import { PROXY } from "../../../cni/pod";
import { base64 } from "../../../host/base64";
import type { Log } from "../../../process/log";
import { utf8 } from "../../../system/bytes";
import { type AnnotateOptions, annotatePod, type PodNamespace, type Verdict } from "./annotate";

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
/** The used fields of a pod. */
export type ReviewedPod = z.infer<typeof POD>;

/** @throws ReviewError that names the first invalid field */
function parse<T extends z.ZodMiniType>(schema: T, value: unknown, at: string): z.infer<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const path = [...(at === "" ? [] : [at]), ...(issue?.path ?? []).map(String)].join(".");
  throw new ReviewError(`${path || "the document"} ${issue?.message}`);
}

/** @throws ReviewError */
const parseReview = (document: unknown): ReviewRequest => parse(REVIEW, document, "").request;

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

/** The pod to decide about; undefined if there is nothing to decide. @throws ReviewError */
function subject(request: ReviewRequest): ReviewedPod | undefined {
  const { resource, group } = request.resource;
  if (resource !== "pods" || group) {
    const name = [resource, group].filter(Boolean).join(".");
    throw new ReviewError(`request.resource is ${name}: this webhook reviews pods`);
  }
  if (request.subResource || !["CREATE", "UPDATE"].includes(request.operation)) return undefined;
  const pod = parsePod(request);
  return isOpen(request, pod) ? pod : undefined;
}

/** Injectors run when a pod is created, so the proxy's user is fixed at an update. */
function hasProxyUser({ operation }: ReviewRequest, { spec }: ReviewedPod): boolean {
  const containers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  return operation === "UPDATE" && containers.some(({ name }) => name === PROXY);
}

const UNCHANGED: Verdict = { patch: [], warnings: [], notes: [] };

async function judge(request: ReviewRequest, { namespace, options, log }: ReviewDeps): Promise<Verdict> {
  const pod = subject(request);
  if (pod === undefined) return UNCHANGED;
  if (!request.namespace) throw new ReviewError("request.namespace is empty");
  const place = await namespace(request.namespace);
  const verdict = annotatePod(pod, place, { ...options, hasProxyUser: hasProxyUser(request, pod) });
  const { operation, dryRun } = request;
  const { name, generateName } = pod.metadata ?? {};
  const about = { namespace: place.name, pod: name || generateName || "", operation, dryRun: dryRun ?? false };
  for (const note of verdict.notes) log.warn(note, about);
  if (verdict.patch.length > 0) log.info("annotates a pod", about);
  return verdict;
}

/** Answers an AdmissionReview about a pod, without side effects. @throws ReviewError, and what `namespace` throws */
export async function answerReview(document: unknown, deps: ReviewDeps): Promise<AdmissionResponse> {
  const request = parseReview(document);
  const { patch, warnings } = await judge(request, deps);
  return {
    uid: request.uid,
    allowed: true,
    ...(warnings.length > 0 ? { warnings } : {}),
    ...(patch.length > 0 ? { patchType: "JSONPatch", patch: base64(utf8(JSON.stringify(patch))) } : {}),
  };
}

/** The answer's document. */
export const reviewOf = (response: AdmissionResponse) => ({ apiVersion: API_VERSION, kind: KIND, response });
