/** Objects of the API server, with the fields for decisions about a pod. */
import { Annotation } from "./contract";
import type { Namespace } from "./decide";
import type { PodName } from "./environment";
import { CniError, ErrorCode, quoted } from "./errors";
import type { Pod } from "./pod";

type Texts = Readonly<Record<string, string>>;
type Container = Readonly<Record<"name", string>>;

interface ApiObject {
  readonly kind?: string;
  readonly metadata?: {
    readonly name?: string;
    readonly uid?: string;
    readonly annotations?: Texts | null;
    readonly labels?: Texts | null;
  };
  readonly spec?: {
    readonly containers?: readonly Container[];
    readonly initContainers?: readonly Container[] | null;
    readonly ports?: readonly { readonly port?: number; readonly targetPort?: number | string }[] | null;
  };
}

const apiObject = (answer: unknown): ApiObject => (typeof answer === "object" && answer !== null ? answer : {});

/**
 * Another answer, such as a proxy's, must not count as a pod without a proxy. @throws CniError 11 if it is not the
 * requested object
 */
function requested(answer: unknown, kind: "Pod" | "Namespace" | "Service", name: string, namespace?: string) {
  const object = apiObject(answer);
  const refuse = (because: string): never => {
    const what = `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
    throw new CniError(ErrorCode.tryAgainLater, `the API server's answer is not ${what}: ${because}`);
  };
  const { kind: found, metadata } = object;
  if (found !== kind) return refuse(`its kind is ${quoted(String(found))}`);
  if (metadata?.name !== name) return refuse(`its metadata.name is ${quoted(String(metadata?.name))}`);
  return { object, refuse };
}

const names = (containers: readonly Container[]) => containers.map(({ name }) => name);

/**
 * A pod of the API server. A StatefulSet may delete a pod and create another with the same name while the first one's
 * sandbox is created: the UID tells them apart. For a static pod, the kubelet's UID is in an annotation of its mirror.
 * @throws CniError 11 if the answer is not this pod
 */
export function podFromObject({ namespace, name, uid }: PodName, answer: unknown): Pod {
  const { object, refuse } = requested(answer, "Pod", name, namespace);
  const { metadata, spec } = object;
  const { containers, initContainers } = spec ?? {};
  if (!Array.isArray(containers)) return refuse("its spec.containers is missing");
  const annotations = metadata?.annotations ?? {};
  const found = metadata?.uid;
  if (uid !== undefined && found !== undefined && found !== uid && annotations[Annotation.mirror] !== uid) {
    return refuse(`its metadata.uid is ${quoted(found)}, this pod's ${quoted(uid)}: another has taken this pod's name`);
  }
  return {
    namespace,
    name,
    annotations,
    labels: metadata?.labels ?? {},
    containers: names(containers),
    initContainers: names(initContainers ?? []),
  };
}

/** A namespace of the API server. @throws CniError 11 if the answer is not one */
export function namespaceFromObject(name: string, answer: unknown): Namespace {
  return { name, annotations: requested(answer, "Namespace", name).object.metadata?.annotations ?? {} };
}

/**
 * The ports and numeric target ports of the API server's Service, `default/kubernetes`; undefined if it has none.
 * @throws CniError 11 if the answer is not that Service
 */
export function apiServerPorts(answer: unknown): readonly number[] | undefined {
  const { object } = requested(answer, "Service", "kubernetes", "default");
  // A named target port may differ between endpoints.
  const ports = (object.spec?.ports ?? [])
    .flatMap(({ port, targetPort }) => [port, targetPort])
    .filter((port) => typeof port === "number");
  return ports.length > 0 ? ports : undefined;
}

/** Only the annotations or labels on which decisions may depend. */
const reducedTexts = (texts: Texts | null | undefined): Texts =>
  Object.fromEntries(
    Object.entries(texts ?? {}).filter(([key]) => key.includes("linkerd.io/") || key === Annotation.mirror),
  );
const onlyNames = (containers: readonly Container[] | null | undefined) => containers?.map(({ name }) => ({ name }));

/** An object of the API server reduced to the fields that the functions above read. */
export function reducedObject(object: unknown): object {
  const { kind, metadata, spec } = apiObject(object);
  return {
    kind,
    metadata: {
      name: metadata?.name,
      uid: metadata?.uid,
      annotations: reducedTexts(metadata?.annotations),
      labels: reducedTexts(metadata?.labels),
    },
    spec: {
      containers: onlyNames(spec?.containers),
      initContainers: onlyNames(spec?.initContainers),
      ports: spec?.ports?.map(({ port, targetPort }) => ({ port, targetPort })),
    },
  };
}
