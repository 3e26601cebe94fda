/** Learns about a pod: from what the runtime passed, and from the API server only where that does not decide. */
import { API_SERVER_PORTS, type Namespace, type Surroundings } from "../cni/decide";
import { CniError, ErrorCode, reasonOf } from "../cni/errors";
import {
  apiServerPorts,
  besides,
  knownFromAnnotations,
  type Learned,
  type PassedPod,
  podFromAnnotations,
  podFromObject,
} from "../cni/known";
import { isInjected, type Pod } from "../cni/pod";
import type { PodLookup } from "../cni/stanza";
import type { Transport } from "../kubernetes/client";
import type { NamespaceObject, PodObject, ServiceObject } from "../kubernetes/types";

/** Milliseconds for all requests of one call together. */
export const LOOKUP_DEADLINE_MS = 5000;

export interface Question extends PassedPod {
  readonly policy: PodLookup;
  /** Where the kubeconfig stands, for messages. */
  readonly kubeconfig: string;
}

/** Connects when first asked, so that a call that needs no request reads no kubeconfig. */
export type OpenTransport = () => Transport;

const UNAUTHORIZED = 401;
const OK = 200;

function refusal(status: number, what: string, question: Question): string {
  if (status === UNAUTHORIZED) {
    return `the API server answered 401: the token in ${question.kubeconfig} has expired or is not known there; the linkerd-cni DaemonSet's pod on this node renews it`;
  }
  return `the API server answered ${status} when asked for ${what}`;
}

/** Reads objects within one deadline for all. */
class Reader {
  private readonly begin = performance.now();

  constructor(
    private readonly transport: Transport,
    private readonly question: Question,
  ) {}

  /** @throws CniError 11, ApiUnreachable */
  async read<T>(path: string, what: string): Promise<T> {
    const left = LOOKUP_DEADLINE_MS - (performance.now() - this.begin);
    const { status, body } = await this.transport({ path, deadlineMs: Math.max(1, Math.round(left)) });
    if (status !== OK) throw new CniError(ErrorCode.tryAgainLater, refusal(status, what, this.question));
    try {
      return JSON.parse(body) as T;
    } catch (error) {
      throw new CniError(ErrorCode.tryAgainLater, `the API server's answer for ${what}: ${reasonOf(error)}`);
    }
  }

  async pod(): Promise<Pod> {
    const { namespace, name } = this.question.pod;
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    return podFromObject(this.question.pod, await this.read<PodObject>(path, `pod ${namespace}/${name}`));
  }

  async namespace(): Promise<Namespace> {
    const name = this.question.pod.namespace;
    const found = await this.read<NamespaceObject>(`/api/v1/namespaces/${name}`, `namespace ${name}`);
    return { name, annotations: found.metadata?.annotations ?? {} };
  }

  /** Port and numeric target port of the API server's Service; the usual ones where it cannot be read. */
  async apiServerPorts(): Promise<readonly number[]> {
    try {
      const service = await this.read<ServiceObject>(
        "/api/v1/namespaces/default/services/kubernetes",
        "service default/kubernetes",
      );
      return apiServerPorts(service) ?? API_SERVER_PORTS;
    } catch {
      return API_SERVER_PORTS;
    }
  }

  /** At most one request beyond the pod's. */
  async around(pod: Pod): Promise<Surroundings> {
    switch (besides(pod)) {
      case "apiServerPorts":
        return { apiServerPorts: await this.apiServerPorts() };
      case "namespace":
        return { namespace: await this.namespace() };
      default:
        return {};
    }
  }
}

function unanswered(error: unknown, question: Question): CniError {
  if (error instanceof CniError) return error;
  const remedy = `check that the node reaches it and that ${question.kubeconfig} is current`;
  const { namespace, name } = question.pod;
  return new CniError(
    ErrorCode.tryAgainLater,
    `cannot look up pod ${namespace}/${name}: ${reasonOf(error)}; ${remedy}`,
    "",
    { cause: error },
  );
}

async function ask(question: Question, open: OpenTransport): Promise<Learned> {
  const reader = new Reader(open(), question);
  const pod = await reader.pod();
  return { kind: "pod", pod, around: await reader.around(pod) };
}

/**
 * What is known about a pod.
 * @throws CniError 11 where the pod cannot be looked up and annotations do not decide
 */
export async function lookUp(question: Question, open: OpenTransport): Promise<Learned> {
  const known = knownFromAnnotations(question, question.policy);
  if (known !== undefined) return known;
  try {
    return await ask(question, open);
  } catch (error) {
    const failure = unanswered(error, question);
    const trusted = question.policy !== "api" && isInjected(question.annotations ?? {});
    if (!trusted) throw failure;
    return { kind: "pod", pod: podFromAnnotations(question), around: {}, because: failure.message };
  }
}
