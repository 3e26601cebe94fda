import { Annotation, NetworkDefinition } from "../../../cni/contract";
import { MAX_ID } from "../../../cni/ids";
import { isControlPlane } from "../../../cni/pod";
import { ENABLED } from "../definitions/plan-definition";
import { NetworksError, withNetwork } from "./networks";

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
export interface DecisiveFields {
  readonly metadata?: { readonly annotations?: DecisiveAnnotations | undefined } | undefined;
  readonly isControlPlane: boolean;
}

interface Metadata {
  readonly annotations?: Annotations | null | undefined;
  readonly labels?: Annotations | null | undefined;
}

/** Copies what decides from a pod's metadata. */
export function decisiveFields(metadata: Metadata | null | undefined): DecisiveFields {
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

export interface AnnotateOptions {
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
export interface Verdict {
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
export function annotatePod(pod: DecisiveFields, namespace: PodNamespace, options: AnnotateOptions): Verdict {
  const annotator = new Annotator(pod, namespace, options);
  // A static pod has no injected proxy, whatever its mirror says.
  if (pod.metadata?.annotations?.[Annotation.mirror] === undefined) annotator.run();
  const { added, warnings, notes } = annotator;
  return { patch: additions(pod, added), warnings, notes };
}
