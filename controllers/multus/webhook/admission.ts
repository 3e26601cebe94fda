import type { Log } from "../../../cni/log";
import { PROXY } from "../../../cni/pod";
import { type AnnotateOptions, annotatePod, type PodNamespace, type Verdict } from "./annotate";
import { API_VERSION, KIND, parsePod, parseReview, ReviewError, type ReviewedPod, type ReviewRequest } from "./review";

/** What a review needs from outside. */
export interface ReviewTools {
  /** @throws where nothing can be learned about the namespace */
  readonly namespace: (name: string) => Promise<PodNamespace>;
  readonly options: AnnotateOptions;
  readonly log: Log;
}

/** The part of a review that is sent back. */
export interface AdmissionResponse {
  readonly uid: string;
  readonly allowed: true;
  readonly patchType?: "JSONPatch";
  /** The patch as JSON in base64. */
  readonly patch?: string;
  readonly warnings?: readonly string[];
}

/** Whether the pod may still be without its networks; when a node has it, another annotation changes nothing. */
function isOpen({ operation }: ReviewRequest, { metadata, spec }: ReviewedPod): boolean {
  return operation === "CREATE" || (!spec?.nodeName && !metadata?.deletionTimestamp);
}

/** The pod to look at; none where there is nothing to decide. @throws ReviewError */
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

/** Injectors run when a pod is created: the proxy that an update finds runs as the user that it has. */
function hasProxyUser({ operation }: ReviewRequest, { spec }: ReviewedPod): boolean {
  const containers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  return operation === "UPDATE" && containers.some(({ name }) => name === PROXY);
}

const UNCHANGED: Verdict = { patch: [], warnings: [], notes: [] };

async function judge(request: ReviewRequest, { namespace, options, log }: ReviewTools): Promise<Verdict> {
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

/** Answers an AdmissionReview about a pod; nothing outside is changed. @throws ReviewError, and what `namespace` throws */
export async function answerReview(document: unknown, tools: ReviewTools): Promise<AdmissionResponse> {
  const request = parseReview(document);
  const { patch, warnings } = await judge(request, tools);
  return {
    uid: request.uid,
    allowed: true,
    ...(warnings.length > 0 ? { warnings } : {}),
    ...(patch.length > 0
      ? { patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(patch)).toString("base64") }
      : {}),
  };
}

/** The document that is sent back. */
export const reviewOf = (response: AdmissionResponse) => ({ apiVersion: API_VERSION, kind: KIND, response });
