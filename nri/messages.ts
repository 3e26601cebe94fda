/** The messages of NRI, package nri.pkg.api.v1alpha1, with the fields that this plugin reads and writes. */
import { Annotation, Label, SETTING_PREFIX } from "../cni/contract";
import { SETTINGS } from "../cni/decide";
import { concat } from "../host/bytes";
import { bytesField, Keys, Message, numberField, type Texts, type Wanted, whole } from "./protobuf";

const PACKAGE = "nri.pkg.api.v1alpha1";
export const REGISTER = `${PACKAGE}.Runtime/RegisterPlugin`;

/** The runtime's calls. */
export const Method = {
  configure: `${PACKAGE}.Plugin/Configure`,
  synchronize: `${PACKAGE}.Plugin/Synchronize`,
  /** Up to NRI 0.11 every event of a sandbox; later, events without a separate call. */
  stateChange: `${PACKAGE}.Plugin/StateChange`,
  /** Since NRI 0.12. */
  runPodSandbox: `${PACKAGE}.Plugin/RunPodSandbox`,
  removePodSandbox: `${PACKAGE}.Plugin/RemovePodSandbox`,
  createContainer: `${PACKAGE}.Plugin/CreateContainer`,
  shutdown: `${PACKAGE}.Plugin/Shutdown`,
} as const;

/** Events by their numbers. */
export const Event = { runPodSandbox: 1, removePodSandbox: 3, createContainer: 4 } as const;

/** A pod as the runtime describes it. */
export interface Sandbox {
  readonly id: string;
  readonly name: string;
  readonly namespace: string;
  /** The pod's UID, since earlier and later pods may have the same name. */
  readonly uid?: string;
  /** The labels and annotations that decide about a pod. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Path of its network namespace; a pod on the host's network has none. */
  readonly netns?: string;
  /** Whether the runtime gave it an address. */
  readonly hasAddress: boolean;
}

const Pod = { id: 1, name: 2, uid: 3, namespace: 4, labels: 5, annotations: 6, linux: 8, addresses: 10 } as const;
/** The labels and annotations for the decision about a pod, which may have a hundred thousand others. */
const LABELS = new Keys([Label.controlPlaneComponent]);
const ANNOTATIONS = new Keys([
  Annotation.createdBy,
  Annotation.proxyVersion,
  ...SETTINGS.map((setting) => `${SETTING_PREFIX}${setting}`),
]);
const POD_FIELDS: Wanted = Object.assign(whole(Pod.id, Pod.name, Pod.uid, Pod.namespace, Pod.linux, Pod.addresses), {
  [Pod.labels]: LABELS,
  [Pod.annotations]: ANNOTATIONS,
});
const Linux = { namespaces: 5 } as const;
const LINUX_FIELDS = whole(Linux.namespaces);
const Namespace = { type: 1, path: 2 } as const;

function sandboxOf(bytes: Uint8Array, texts: Texts): Sandbox {
  const pod = new Message(bytes, texts, POD_FIELDS);
  const namespaces = new Message(pod.data(Pod.linux), texts, LINUX_FIELDS).messages(Linux.namespaces);
  const netns = namespaces.find((each) => each.text(Namespace.type) === "network")?.text(Namespace.path);
  const uid = pod.text(Pod.uid);
  return {
    id: pod.text(Pod.id),
    name: pod.text(Pod.name),
    namespace: pod.text(Pod.namespace),
    ...(uid ? { uid } : {}),
    labels: pod.map(Pod.labels),
    annotations: pod.map(Pod.annotations),
    ...(netns ? { netns } : {}),
    hasAddress: pod.all(Pod.addresses).length > 0,
  };
}

/** The runtime's name and version. */
export interface Configuration {
  readonly runtime: string;
  /** Milliseconds that an answer may take. */
  readonly requestTimeout: number;
}

const Configure = { runtimeName: 2, runtimeVersion: 3, requestTimeout: 5 } as const;

export function readConfigure(payload: Uint8Array, texts: Texts): Configuration {
  const read = new Message(payload, texts);
  return {
    runtime: `${read.text(Configure.runtimeName)} ${read.text(Configure.runtimeVersion)}`,
    requestTimeout: read.number(Configure.requestTimeout),
  };
}

/** The running pods; `more` means that the next call continues the list. */
export interface Synchronization {
  /** Decodes them. @throws ProtocolError */
  readonly sandboxes: () => readonly Sandbox[];
  readonly more: boolean;
}

const Synchronize = { pods: 1, more: 3 } as const;
const SYNCHRONIZE_FIELDS = whole(Synchronize.pods, Synchronize.more);

export function readSynchronize(payload: Uint8Array, texts: Texts): Synchronization {
  const read = new Message(payload, texts, SYNCHRONIZE_FIELDS);
  return {
    sandboxes: () => read.all(Synchronize.pods).map((pod) => sandboxOf(pod, texts)),
    more: read.number(Synchronize.more) !== 0,
  };
}

const StateChange = { event: 1, pod: 2 } as const;

export function readStateChange(
  payload: Uint8Array,
  texts: Texts,
): { readonly event: number; readonly sandbox: Sandbox } {
  const read = new Message(payload, texts);
  return { event: read.number(StateChange.event), sandbox: sandboxOf(read.data(StateChange.pod), texts) };
}

/** The pod of a call for one pod or one container. */
export function readPodOf(payload: Uint8Array, texts: Texts): Sandbox {
  return sandboxOf(new Message(payload, texts).data(1), texts);
}

export function registration(name: string, index: string, { encode }: Texts): Uint8Array {
  return concat([bytesField(1, encode(name)), bytesField(2, encode(index))]);
}

/** Subscribes to events. */
export function subscription(events: readonly number[]): Uint8Array {
  return numberField(
    2,
    events.reduce((mask, event) => mask | (1 << (event - 1)), 0),
  );
}

/** The answer to Synchronize that requests the rest. */
export function synchronized({ more }: Pick<Synchronization, "more">): Uint8Array {
  return numberField(2, more ? 1 : 0);
}
