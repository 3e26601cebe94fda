/** Gathers the evidence about a pod: from its annotations, and from the API server if they are not enough. */
import { apiServerPorts, namespaceFromObject, podFromObject } from "./api-objects";
import { API_SERVER_PORTS, type Surroundings } from "./decide";
import { OBJECT_NAME } from "./environment";
import { CniError, ErrorCode, reasonOf } from "./errors";
import { type Evidence, evidenceFromAnnotations, extraLookup, type PassedPod } from "./evidence";
import type { Pod } from "./pod";
import type { PodLookup } from "./stanza";

/**
 * Gets an object of the API server by its path. `isNeeded`: nothing else can decide about the pod, so it is worth
 * waiting for the answer. @throws an Error that says why there is no answer
 */
export type Get = (path: string, isNeeded: boolean) => { readonly status: number; readonly body: string };

/** The evidence, and if it comes from annotations as a fallback, why the API server did not answer. */
export interface Gathered {
  readonly evidence: Evidence;
  readonly unanswered?: string;
}

const NAMESPACES = "/api/v1/namespaces";
const podPath = (namespace: string, name: string) => `${NAMESPACES}/${namespace}/pods/${name}`;
const namespacePath = (name: string) => `${NAMESPACES}/${name}`;
const API_SERVER_SERVICE = `${NAMESPACES}/default/services/kubernetes`;

/** Whether decisions request a path: a pod, a namespace, or the API server's Service. */
export function isLookup(path: string): boolean {
  const [namespace = "", kind, name = "", ...more] = path.slice(NAMESPACES.length + 1).split("/");
  if (path === API_SERVER_SERVICE) return true;
  if (!path.startsWith(`${NAMESPACES}/`) || !OBJECT_NAME.test(namespace)) return false;
  return kind === undefined || (kind === "pods" && OBJECT_NAME.test(name) && more.length === 0);
}

const OK = 200;

/** Looks up a pod and its related object. */
class Lookup {
  constructor(
    private readonly get: Get,
    private readonly isNeeded: boolean,
  ) {}

  /** @throws CniError 11, and what `get` throws */
  evidence({ pod: name }: PassedPod): Evidence {
    const { namespace, name: podName } = name;
    const pod = podFromObject(name, this.read(podPath(namespace, podName), `pod ${namespace}/${podName}`));
    return { pod, around: this.around(pod) };
  }

  /** Further evidence besides the pod: at most one request. */
  private around(pod: Pod): Surroundings {
    switch (extraLookup(pod)) {
      case "apiServerPorts":
        return { apiServerPorts: this.apiServerPorts() };
      case "namespace": {
        const name = pod.namespace;
        return { namespace: namespaceFromObject(name, this.read(namespacePath(name), `namespace ${name}`)) };
      }
      default:
        return {};
    }
  }

  /** Ports and numeric target ports of the API server's Service; the usual ones if it cannot be read. */
  private apiServerPorts(): readonly number[] {
    try {
      return apiServerPorts(this.read(API_SERVER_SERVICE, "service default/kubernetes")) ?? API_SERVER_PORTS;
    } catch {
      return API_SERVER_PORTS;
    }
  }

  private read(path: string, what: string): unknown {
    const { status, body } = this.get(path, this.isNeeded);
    if (status !== OK) {
      throw new CniError(ErrorCode.tryAgainLater, `the API server answered ${status} when asked for ${what}`);
    }
    try {
      return JSON.parse(body);
    } catch (error) {
      throw new CniError(ErrorCode.tryAgainLater, `the API server's answer for ${what}: ${reasonOf(error)}`);
    }
  }
}

function lookupFailure(error: unknown, { pod: { namespace, name } }: PassedPod): CniError {
  if (error instanceof CniError) return error;
  const message = `cannot look up pod ${namespace}/${name}: ${reasonOf(error)}`;
  return new CniError(ErrorCode.tryAgainLater, message, "", { cause: error });
}

/**
 * Gathers the evidence about a pod, with as few requests as `pod-lookup` allows.
 * @throws CniError 11 if the pod cannot be looked up and its annotations are not enough
 */
export function gatherEvidence(passed: PassedPod, policy: PodLookup, get: Get): Gathered {
  const annotated = evidenceFromAnnotations(passed, policy);
  if (annotated !== undefined && policy === "annotations") return { evidence: annotated };
  try {
    return { evidence: new Lookup(get, annotated === undefined).evidence(passed) };
  } catch (error) {
    const failure = lookupFailure(error, passed);
    if (annotated === undefined) throw failure;
    return { evidence: annotated, unanswered: failure.message };
  }
}
