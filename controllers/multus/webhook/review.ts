import * as z from "zod/mini";

export const API_VERSION = "admission.k8s.io/v1";
export const KIND = "AdmissionReview";

/** The document is no review that this webhook can answer; the message says where and why. */
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
    operation: z.enum(["CREATE", "UPDATE", "DELETE", "CONNECT"], "is no operation"),
    resource: object({ group: z.nullish(text), resource: text }),
    subResource: z.nullish(text),
    namespace: z.nullish(text),
    dryRun: z.nullish(z.boolean("is not true or false")),
    object: z.optional(z.unknown()),
  }),
});
/** What the API server asks. */
export type ReviewRequest = z.infer<typeof REVIEW>["request"];

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
/** A pod, as far as it is looked at. */
export type ReviewedPod = z.infer<typeof POD>;

/** @throws ReviewError that names the first member that does not fit */
function parse<T extends z.ZodMiniType>(schema: T, value: unknown, at: string): z.infer<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const path = [...(at === "" ? [] : [at]), ...(issue?.path ?? []).map(String)].join(".");
  throw new ReviewError(`${path || "the document"} ${issue?.message}`);
}

/** @throws ReviewError */
export const parseReview = (document: unknown): ReviewRequest => parse(REVIEW, document, "").request;

/** The pod that a request is about. @throws ReviewError */
export const parsePod = ({ object }: ReviewRequest): ReviewedPod => parse(POD, object, "request.object");
