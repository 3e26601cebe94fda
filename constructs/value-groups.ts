import { MAX_PORT } from "../cni/ports";
import { group, value } from "../helm/index";
import { registry, version } from "./version";

/** The numbers of ports. */
export const PORT_NUMBERS = { min: 1, max: MAX_PORT } as const;

/** A text without control characters. */
export const WORD = { pattern: /^[^\p{Cc}]*$/u, wrong: "is not a text on one line" } as const;

/** An absolute path, with any character but control characters. */
export const DIRECTORY = { pattern: /^\/[^\p{Cc}]*$/u, wrong: "is not an absolute path" } as const;

/** The same, or nothing. */
export const DIRECTORY_OR_NOTHING = { ...DIRECTORY, pattern: /^\/[^\p{Cc}]*$|^$/u } as const;

/** The items of a list of ports. */
export interface PortItem {
  readonly pattern: string;
  /** The error for an item that does not match. */
  readonly wrong: string;
}

// Port 0 too, as in linkerd's lists; no connection has it.
const onePort = "(0|[1-9][0-9]{0,4})";
export const PORT: PortItem = { pattern: `^${onePort}$`, wrong: `is not a port between 0 and ${MAX_PORT}` };
export const PORT_RANGE: PortItem = {
  pattern: `^${onePort}(-${onePort})?$`,
  wrong: `is not a port or a range low-high between 0 and ${MAX_PORT}`,
};

/** Separator of a list's items. */
export const COMMA = "[ \\t\\r\\n]*,[ \\t\\r\\n]*";

function isRight(item: string, { pattern }: PortItem): boolean {
  const [low = Number.NaN, high = low] = item.split("-").map(Number);
  return new RegExp(pattern).test(item) && low <= high && high <= MAX_PORT;
}

/** A comma-separated list. Constructs and templates check its items, because a JSON schema can only show a pattern. */
const listOf = (item: PortItem) => ({
  check: (text: string): readonly string[] =>
    text
      .trim()
      .split(new RegExp(COMMA))
      .filter((one) => one !== "" && !isRight(one, item))
      .map((one) => `has ${one}, which ${item.wrong}`),
});

/** Ports, comma-separated. */
export const PORTS = listOf(PORT);

/** Ports and ranges, comma-separated. */
export const PORT_RANGES = listOf(PORT_RANGE);

/** A number, or a percentage. */
export const SHARE = {
  pattern: /^(0|[1-9][0-9]{0,4})%?$/,
  wrong: "is not a number or a percentage such as 25%",
  number: { minimum: 0, maximum: 99999, multipleOf: 1 },
} as const;

/** The same, or nothing. */
export const SHARE_OR_NOTHING = { ...SHARE, pattern: /^((0|[1-9][0-9]{0,4})%?)?$/ } as const;

/** Labels. */
export const LABELS = {
  keys: {
    pattern: /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/,
    wrong: "is not a label's name, such as team or example.com/team",
  },
  texts: {
    pattern: /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/,
    wrong: "is not a label's value: up to 63 letters, digits, -, _ and ., beginning and ending with a letter or digit",
  },
} as const;

/** The name of a priority class, or nothing. */
export const PRIORITY_CLASS = {
  pattern: /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$/,
  wrong: "is not the name of a priority class, such as system-node-critical",
} as const;

/** The name of a namespace. */
export const NAMESPACE = {
  pattern: /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/,
  wrong: "is not the name of a namespace",
} as const;

/** The name of an annotation, with or without a prefix. */
export const ANNOTATION = {
  pattern: /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/,
  wrong: "is not an annotation's name",
} as const;

/** A part of a manifest: the API server knows its fields. */
export const ANYTHING = { members: {}, isOpen: true } as const;

const name = (what: string) => value.string({ notEmpty: true, required: true, description: `Name of the ${what}` });

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
    limit: value.quantity({
      default: "",
      description: `The container's ${what} limit`,
      examples: [example.limit],
    }),
    request: value.quantity({
      default: request,
      description: `The container's ${what} request`,
      examples: [example.request],
    }),
  });

export const toleration = {
  key: value.string({ description: "Key of the tolerated taint; empty for all, with operator Exists" }),
  operator: value.choice(["Exists", "Equal"], {
    description: "Whether the taint may have any value, or must have `value`; Equal by default",
  }),
  value: value.string({ description: "Value of the tolerated taint" }),
  effect: value.choice(["NoSchedule", "PreferNoSchedule", "NoExecute"], {
    description: "Effect of the tolerated taint; empty for all",
  }),
  tolerationSeconds: value.integer({
    min: Number.MIN_SAFE_INTEGER,
    max: Number.MAX_SAFE_INTEGER,
    isStrict: true,
    description: "How many seconds a NoExecute taint is tolerated; without it, for as long as it exists",
  }),
};

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
    name: value.string({
      ...WORD,
      notEmpty: true,
      check: (name) => (new RegExp(LINKERDS_IMAGE.pattern).test(name) ? [LINKERDS_IMAGE_WRONG] : []),
      default: IMAGE,
      description: "Name of the image",
    }),
    version: value.numericString({
      ...WORD,
      notEmpty: true,
      default: version,
      description: "Tag of the image",
      examples: ["0.1.0"],
    }),
    digest: value.string({
      check: (digest) => (new RegExp(DIGEST.pattern).test(digest) ? [] : [DIGEST.wrong]),
      default: "",
      description: "Digest of the image, `sha256:` and 64 hexadecimal digits; with one, the tag is not used",
    }),
    pullPolicy: value.choice(["IfNotPresent", "Always", "Never"], {
      default: "IfNotPresent",
      description: "When the image is pulled",
    }),
  });

/** Variables of containers. @param whose such as "the operator's container" */
export const extraEnv = (whose: string) =>
  value.list({
    members: {
      name: name("variable"),
      value: value.string({ description: "Value of the variable" }),
      valueFrom: value.object({
        ...ANYTHING,
        description: "Source of the value, such as secretKeyRef, instead of `value`",
      }),
    },
    default: [],
    description: `Environment variables of ${whose}, besides the chart's own`,
    examples: [[{ name: "KUBERNETES_SERVICE_HOST", value: "api.example.com" }]],
  });

/** Labels and annotations that users add. */
export const addedMetadata = {
  podLabels: value.map({ ...LABELS, default: {}, description: "Labels of the pods, besides the chart's own" }),
  commonLabels: value.map({ ...LABELS, default: {}, description: "Labels of every resource, besides the chart's own" }),
  commonAnnotations: value.map({
    default: {},
    description: "Annotations of every resource, besides the chart's own; those of the pods are podAnnotations",
    examples: [{ "argocd.argoproj.io/sync-wave": "-1" }],
  }),
};

export const nodeSelector = value.map({
  ...LABELS,
  default: {},
  description: "Labels of the nodes that the pods may run on, besides kubernetes.io/os: linux",
});

/** Whole manifests: the API server knows their fields. */
export const extraObjects = () =>
  value.list({
    members: {
      apiVersion: value.string({ notEmpty: true, required: true, description: "API group and version of the object" }),
      kind: value.string({ notEmpty: true, required: true, description: "Kind of the object" }),
      metadata: value.object({
        members: { name: name("object") },
        isOpen: true,
        required: true,
        description: "Metadata of the object",
      }),
    },
    isOpen: true,
    default: [],
    description: "Manifests that are installed with the chart, as they are: nothing in them is a template",
    examples: [[{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "notes" }, data: { owner: "mesh" } }]],
  });

/** The grace period of a pod. @param least seconds that it needs */
export const terminationGracePeriodSeconds = (least: number) =>
  value.integer({
    min: least,
    max: 3600,
    default: 30,
    description: "Termination grace period of the pods in seconds",
  });

export const imagePullSecrets = () =>
  value.list({
    members: { name: name("secret") },
    default: [],
    description: "Names of secrets to pull the image with",
    examples: [[{ name: "registry" }]],
  });

/** Peers of a NetworkPolicy. */
const peer = {
  ipBlock: value.object({
    members: {
      cidr: value.string({ required: true, description: "Network of the peers, such as 10.0.0.0/8" }),
      except: value.texts({ description: "Networks in it that are not meant" }),
    },
    description: "Peers by their addresses",
  }),
  namespaceSelector: value.object({ ...ANYTHING, description: "Namespaces of the peers" }),
  podSelector: value.object({ ...ANYTHING, description: "Pods that are peers, in the selected namespaces" }),
};

/** @param allows what the policy allows @param ports that its peers may connect to */
export const networkPolicyGroup = (allows: string, ports: string) =>
  group("NetworkPolicy for the pods", {
    enabled: value.boolean({ default: false, description: `Create a NetworkPolicy${allows}` }),
    from: value.list({
      members: peer,
      default: [],
      description: `NetworkPolicy peers that may connect to ${ports}; empty for everyone`,
      examples: [[{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } } }]],
    }),
  });
