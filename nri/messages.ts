/** The messages of NRI, package nri.pkg.api.v1alpha1, with the fields that this plugin reads and writes. */
import { Annotation, Label, SETTING_PREFIX } from "../cni/contract";
import { SETTINGS } from "../cni/decide";
import { concat } from "../host/bytes";
import { bytesField, Fields, Keys, numberField, type Texts } from "./protobuf";

const NOTHING = new Uint8Array(0);
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
  readonly uid?: string | undefined;
  /** The labels and annotations that decide about a pod. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Path of its network namespace; a pod on the host's network has none. */
  readonly netns?: string | undefined;
  /** Whether the runtime gave it an address. */
  readonly hasAddress: boolean;
}

const Pod = { id: 1, name: 2, uid: 3, namespace: 4, labels: 5, annotations: 6, linux: 8, addresses: 10 } as const;
/** The labels and annotations for the decision about a pod, which may have a hundred thousand others. */
const LABELS = new Keys([Label.controlPlaneComponent]);
const ANNOTATIONS = new Keys([
  Annotation.createdBy,
  Annotation.proxyVersion,
  ...Object.keys(SETTINGS).map((setting) => `${SETTING_PREFIX}${setting}`),
]);
const Linux = { namespaces: 5 } as const;
const Namespace = { type: 1, path: 2 } as const;

/** The path of the network namespace, if the current namespace is one. */
function networkPath(namespace: Fields): string {
  let [type, path] = ["", ""];
  while (namespace.next()) {
    if (namespace.field === Namespace.type) type = namespace.text();
    else if (namespace.field === Namespace.path) path = namespace.text();
  }
  return type === "network" ? path : "";
}

function sandboxOf(pod: Fields): Sandbox {
  let [id, name, uid, namespace, netns, hasAddress] = ["", "", "", "", "", false];
  const labels: Record<string, string> = {};
  const annotations: Record<string, string> = {};
  while (pod.next()) {
    switch (pod.field) {
      case Pod.id:
        id = pod.text();
        break;
      case Pod.name:
        name = pod.text();
        break;
      case Pod.uid:
        uid = pod.text();
        break;
      case Pod.namespace:
        namespace = pod.text();
        break;
      case Pod.labels:
        pod.addTo(labels, LABELS);
        break;
      case Pod.annotations:
        pod.addTo(annotations, ANNOTATIONS);
        break;
      case Pod.linux:
        for (const linux = pod.fields(); linux.next(); )
          if (linux.field === Linux.namespaces) netns ||= networkPath(linux.fields());
        break;
      case Pod.addresses:
        hasAddress = true;
        break;
    }
  }
  return { id, name, namespace, uid: uid || undefined, labels, annotations, netns: netns || undefined, hasAddress };
}

/** The runtime's name and version. */
export interface Configuration {
  readonly runtime: string;
  /** Milliseconds that an answer may take. */
  readonly requestTimeout: number;
}

const Configure = { runtimeName: 2, runtimeVersion: 3, requestTimeout: 5 } as const;

export function readConfigure(payload: Uint8Array, texts: Texts): Configuration {
  let [name, version, requestTimeout] = ["", "", 0];
  for (const read = new Fields(payload, texts); read.next(); ) {
    if (read.field === Configure.runtimeName) name = read.text();
    else if (read.field === Configure.runtimeVersion) version = read.text();
    else if (read.field === Configure.requestTimeout) requestTimeout = read.number;
  }
  return { runtime: `${name} ${version}`, requestTimeout };
}

/** The running pods; `more` means that the next call continues the list. */
interface Synchronization {
  /** Decodes them. @throws ProtocolError */
  readonly sandboxes: () => readonly Sandbox[];
  readonly more: boolean;
}

const Synchronize = { pods: 1, more: 3 } as const;

export function readSynchronize(payload: Uint8Array, texts: Texts): Synchronization {
  const pods: Fields[] = [];
  let more = false;
  for (const read = new Fields(payload, texts); read.next(); ) {
    if (read.field === Synchronize.pods) pods.push(read.fields());
    else if (read.field === Synchronize.more) more = read.number !== 0;
  }
  return { sandboxes: () => pods.map(sandboxOf), more };
}

const StateChange = { event: 1, pod: 2 } as const;

export function readStateChange(
  payload: Uint8Array,
  texts: Texts,
): { readonly event: number; readonly sandbox: Sandbox } {
  let event = 0;
  let pod = new Fields(NOTHING, texts);
  for (const read = new Fields(payload, texts); read.next(); ) {
    if (read.field === StateChange.event) event = read.number;
    else if (read.field === StateChange.pod) pod = read.fields();
  }
  return { event, sandbox: sandboxOf(pod) };
}

/** The pod of a call for one pod or one container. */
export function readPodOf(payload: Uint8Array, texts: Texts): Sandbox {
  let pod = new Fields(NOTHING, texts);
  for (const read = new Fields(payload, texts); read.next(); ) if (read.field === 1) pod = read.fields();
  return sandboxOf(pod);
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
