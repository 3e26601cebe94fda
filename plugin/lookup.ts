/** Learns about a pod: from what the runtime passed, and from the API server only where that does not decide. */
import { API_SERVER_PORTS, type Namespace, type Surroundings } from "../cni/decide";
import { CniError, ErrorCode, reasonOf } from "../cni/errors";
import {
  apiServerPorts,
  besides,
  knownFromAnnotations,
  type Learned,
  namespaceFromObject,
  type PassedPod,
  podFromAnnotations,
  podFromObject,
} from "../cni/known";
import { isInjected, type Pod } from "../cni/pod";
import type { PodLookup } from "../cni/stanza";
import type { ApiResponse } from "../kubernetes/api-server";

export interface Question extends PassedPod {
  readonly policy: PodLookup;
  /** Where the kubeconfig stands, for messages. */
  readonly kubeconfig: string;
}

/** Gets an object of the API server by its path. @throws ApiUnreachable, KubeconfigError */
export type Get = (path: string) => ApiResponse;

const UNAUTHORIZED = 401;
const OK = 200;

function refusal(status: number, what: string, question: Question): string {
  if (status === UNAUTHORIZED) {
    return `the API server answered 401: the token in ${question.kubeconfig} has expired or is not known there; the linkerd-cni DaemonSet's pod on this node renews it`;
  }
  return `the API server answered ${status} when asked for ${what}`;
}

/** @throws CniError 11, ApiUnreachable, KubeconfigError */
function read(get: Get, path: string, what: string, question: Question): unknown {
  const { status, body } = get(path);
  if (status !== OK) throw new CniError(ErrorCode.tryAgainLater, refusal(status, what, question));
  try {
    return JSON.parse(body);
  } catch (error) {
    throw new CniError(ErrorCode.tryAgainLater, `the API server's answer for ${what}: ${reasonOf(error)}`);
  }
}

function readPod(get: Get, question: Question): Pod {
  const { namespace, name } = question.pod;
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
  return podFromObject(question.pod, read(get, path, `pod ${namespace}/${name}`, question));
}

function readNamespace(get: Get, question: Question): Namespace {
  const name = question.pod.namespace;
  return namespaceFromObject(name, read(get, `/api/v1/namespaces/${name}`, `namespace ${name}`, question));
}

/** Port and numeric target port of the API server's Service; the usual ones where it cannot be read. */
function readApiServerPorts(get: Get, question: Question): readonly number[] {
  const path = "/api/v1/namespaces/default/services/kubernetes";
  try {
    return apiServerPorts(read(get, path, "service default/kubernetes", question)) ?? API_SERVER_PORTS;
  } catch {
    return API_SERVER_PORTS;
  }
}

/** What has to be known besides the pod: at most one request. */
function readSurroundings(get: Get, pod: Pod, question: Question): Surroundings {
  switch (besides(pod)) {
    case "apiServerPorts":
      return { apiServerPorts: readApiServerPorts(get, question) };
    case "namespace":
      return { namespace: readNamespace(get, question) };
    default:
      return {};
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

/**
 * What is known about a pod.
 * @throws CniError 11 where the pod cannot be looked up and annotations do not decide
 */
export function lookUp(question: Question, get: Get): Learned {
  const known = knownFromAnnotations(question, question.policy);
  if (known !== undefined) return known;
  try {
    const pod = readPod(get, question);
    return { kind: "pod", pod, around: readSurroundings(get, pod, question) };
  } catch (error) {
    const failure = unanswered(error, question);
    const trusted = question.policy !== "api" && isInjected(question.annotations ?? {});
    if (!trusted) throw failure;
    return { kind: "pod", pod: podFromAnnotations(question), around: {}, because: failure.message };
  }
}
