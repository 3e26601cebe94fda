import { z } from "zod";
import { integer, numberOrText } from "../helm/loose-types";
import { quantity, word } from "./value-types";
import { registry, version } from "./version";

/** A group of values: absent members have their defaults. */
export const group = <T extends z.ZodRawShape>(description: string, members: T) =>
  z
    .strictObject(members)
    .prefault({} as z.input<z.ZodObject<T, z.core.$strict>>)
    .meta({ description });

const name = (what: string) =>
  z
    .string()
    .min(1)
    .meta({ description: `Name of the ${what}` });

/** Requests and limits of one container; empty ones are left out. @param request the default request */
export const resources = (request: { readonly cpu?: string; readonly memory?: string } = {}) =>
  group("Resources of the container", {
    cpu: bounds("CPU", { limit: "100m", request: "10m" }, request.cpu),
    // The installer uses 4 MiB, and 28 MiB if its health server has its maximum of connections.
    memory: bounds("memory", { limit: "64Mi", request: "10Mi" }, request.memory),
    "ephemeral-storage": bounds("local storage", { limit: "100Mi", request: "100Mi" }),
  });

const bounds = (what: string, example: Readonly<Record<"limit" | "request", string>>, request = "") =>
  group(`Limit and request of ${what}`, {
    limit: quantity()
      .default("")
      .meta({ description: `The most ${what} that the container may use`, examples: [example.limit] }),
    request: quantity()
      .default(request)
      .meta({ description: `The ${what} that the container asks for`, examples: [example.request] }),
  });

export const toleration = z.strictObject({
  key: z.string().optional().meta({ description: "Key of the tolerated taint; empty for all, with operator Exists" }),
  operator: z
    .enum(["Exists", "Equal"])
    .optional()
    .meta({ description: "Whether the taint may have any value, or must have `value`; Equal by default" }),
  value: z.string().optional().meta({ description: "Value of the tolerated taint" }),
  effect: z
    .enum(["NoSchedule", "PreferNoSchedule", "NoExecute"])
    .optional()
    .meta({ description: "Effect of the tolerated taint; empty for all" }),
  tolerationSeconds: z
    .int()
    .optional()
    .meta({ description: "How many seconds a NoExecute taint is tolerated; without it, for as long as it exists" }),
});

const IMAGE = `${registry}/linkerd-cni`;

/** The names of the image in linkerd's own chart, and the problem with them. */
export const LINKERDS_IMAGE = {
  pattern: "^((cr\\.l5d\\.io|ghcr\\.io)/linkerd|gcr\\.io/linkerd-io)/cni-plugin([:@].*)?$",
  problem: "is the image of linkerd's own chart, which cannot run here",
  remedy: `take \`image\` out of your values, or with --reuse-values set image.name=${IMAGE} and image.version=${version}`,
} as const;

/** The same, as one text. */
export const LINKERDS_IMAGE_WRONG = `${LINKERDS_IMAGE.problem}: ${LINKERDS_IMAGE.remedy}`;

/** A digest or an empty text, and the problem of any other text. */
export const DIGEST = {
  pattern: "^(sha256:[0-9a-f]{64})?$",
  wrong: "is not a digest: sha256: and 64 digits of 0-9 and a-f",
} as const;

/** The image that all containers run. */
export const image = () =>
  group("Image of all containers", {
    name: word()
      .min(1)
      .refine((name) => !new RegExp(LINKERDS_IMAGE.pattern).test(name), LINKERDS_IMAGE_WRONG)
      .default(IMAGE)
      .meta({ description: "Name of the image" }),
    version: numberOrText(word().min(1))
      .default(version)
      .meta({ description: "Tag of the image", examples: ["0.1.0"] }),
    digest: z
      .string()
      .refine((digest) => new RegExp(DIGEST.pattern).test(digest), DIGEST.wrong)
      .default("")
      .meta({ description: "Digest of the image, `sha256:` and 64 hexadecimal digits; with one, the tag is not used" }),
    pullPolicy: z
      .enum(["IfNotPresent", "Always", "Never"])
      .default("IfNotPresent")
      .meta({ description: "When the image is pulled" }),
  });

/** Variables of containers. @param whose such as "the operator's container" */
export const extraEnv = (whose: string) =>
  z
    .array(
      z.strictObject({
        name: name("variable"),
        value: z.string().optional().meta({ description: "Value of the variable" }),
        valueFrom: z
          .looseObject({})
          .optional()
          .meta({ description: "Source of the value, such as secretKeyRef, instead of `value`" }),
      }),
    )
    .default([])
    .meta({
      description: `Environment variables of ${whose}, besides the chart's own`,
      examples: [[{ name: "KUBERNETES_SERVICE_HOST", value: "api.example.com" }]],
    });

/** Whole manifests: the API server knows their fields. */
export const extraObjects = () =>
  z
    .array(
      z.looseObject({
        apiVersion: z.string().min(1).meta({ description: "API group and version of the object" }),
        kind: z.string().min(1).meta({ description: "Kind of the object" }),
        metadata: z.looseObject({ name: name("object") }).meta({ description: "Metadata of the object" }),
      }),
    )
    .default([])
    .meta({
      description: "Manifests that are installed with the chart, as they are: nothing in them is a template",
      examples: [[{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "notes" }, data: { owner: "mesh" } }]],
    });

/** The grace period of a pod. @param least seconds that it needs */
export const terminationGracePeriodSeconds = (least: number) =>
  integer(least, 3600).default(30).meta({ description: "How many seconds a pod may take to end before it is killed" });

export const imagePullSecrets = () =>
  z
    .array(z.strictObject({ name: name("secret") }))
    .default([])
    .meta({ description: "Names of secrets to pull the image with", examples: [[{ name: "registry" }]] });

/** A label selector: the API server knows its fields. */
export const selector = z.looseObject({});

/** Peers of a NetworkPolicy. */
export const peer = z.strictObject({
  ipBlock: z
    .strictObject({
      cidr: z.string().meta({ description: "Network of the peers, such as 10.0.0.0/8" }),
      except: z.array(z.string()).optional().meta({ description: "Networks in it that are not meant" }),
    })
    .optional()
    .meta({ description: "Peers by their addresses" }),
  namespaceSelector: selector.optional().meta({ description: "Namespaces of the peers" }),
  podSelector: selector.optional().meta({ description: "Pods that are peers, in the selected namespaces" }),
});
