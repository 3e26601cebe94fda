import pc from "picocolors";
import { stringify } from "yaml";
import { version } from "../../constructs";
import { type CheckedPod, type Event, imageOf, isNri, isReady, type NodeObject, nodeOf } from "../check/objects";
import { reportText } from "../check/report";
import { known } from "../check/snapshot";
import type { Material, NamedPod } from "./gather";
import { redact, redactText } from "./redact";

/** One file of a report. */
export interface ReportFile {
  readonly name: string;
  /** Its content, for a reader of the archive. */
  readonly about: string;
  readonly text: string;
}

const SHOWN_LINES = 1_000;

const timeOf = ({ lastTimestamp, eventTime }: Event): string => lastTimestamp ?? eventTime ?? "";

function eventsText(events: readonly Event[]): string {
  const sorted = [...events].sort((a, b) => timeOf(a).localeCompare(timeOf(b)));
  const lines = sorted.map((event) => {
    const { type = "", reason = "", count = 1, message = "", involvedObject = {} } = event;
    const { kind = "", namespace = "", name = "" } = involvedObject;
    const by = event.source?.component || event.reportingComponent || "";
    return `${timeOf(event)} ${type} ${reason} ${kind} ${namespace}/${name} (${by}, ${count}×): ${message}`;
  });
  return lines.length === 0 ? "none\n" : `${lines.join("\n")}\n`;
}

/** The parts of a tenant's pod that concern the plugin: no specification, no images. */
function otherPod({ pod, events }: NamedPod): object {
  const { metadata, spec, status = {} } = pod;
  const linkerds = (given: Readonly<Record<string, string>> = {}) =>
    Object.fromEntries(Object.entries(given).filter(([key]) => /linkerd\.io\//.test(key)));
  const { conditions, containerStatuses, initContainerStatuses } = status;
  const states = [...(initContainerStatuses ?? []), ...(containerStatuses ?? [])].map(
    ({ name, ready, started, state, lastState }) => ({ name, ready, started, state, lastState }),
  );
  return {
    pod: `${metadata.namespace}/${metadata.name}`,
    node: spec?.nodeName,
    created: metadata.creationTimestamp,
    annotations: linkerds(metadata.annotations),
    labels: linkerds(metadata.labels),
    conditions,
    containers: states,
    events: eventsText(events),
  };
}

function installerPod(pod: CheckedPod): object {
  const { metadata, status } = pod;
  const { name, creationTimestamp, deletionTimestamp, labels, annotations } = metadata;
  return { metadata: { name, creationTimestamp, deletionTimestamp, labels, annotations }, node: nodeOf(pod), status };
}

const readiness = (pods: readonly CheckedPod[]): readonly string[] =>
  pods.map((pod) => `${pod.metadata.name}: ${isReady(pod) ? "ready" : "not ready"}`);

function nodeState({ metadata, spec, status }: NodeObject, pods: readonly CheckedPod[]): object {
  const own = pods.filter((pod) => nodeOf(pod) === metadata.name);
  // The other fields are ids of the machine.
  const { architecture, containerRuntimeVersion, kernelVersion, kubeletVersion, operatingSystem, osImage } =
    status?.nodeInfo ?? {};
  return {
    name: metadata.name,
    installer: readiness(own.filter((pod) => !isNri(pod))),
    nri: own.some(isNri) ? readiness(own.filter(isNri)) : undefined,
    architecture,
    containerRuntimeVersion,
    kernelVersion,
    kubeletVersion,
    operatingSystem,
    osImage,
    taints: spec?.taints,
    conditions: status?.conditions?.filter(({ type, status: is }) => (type === "Ready") === (is !== "True")),
  };
}

type Part = readonly [name: string, about: string, content: string | object | undefined];

function parts(material: Material): readonly Part[] {
  const { findings, versions, snapshot, logs, events, namedPods, namespace } = material;
  const daemonSet = known(snapshot.daemonSet);
  const pods = known(snapshot.pods) ?? [];
  const nodes = known(snapshot.nodes) ?? [];
  const images = pods.flatMap(({ status }) => status?.containerStatuses ?? []);
  const cluster = {
    cli: version,
    image: imageOf(daemonSet),
    imageIDs: [...new Set(images.flatMap(({ imageID }) => (imageID ? [imageID] : [])))],
    kubernetes: versions,
    nodes: [...new Set(nodes.map(({ status = {} }) => runtimeOf(status.nodeInfo)))],
  };
  return [
    ["check.txt", "what l5d-cni check finds, the cause first", reportText(findings, pc.createColors(false))],
    ["versions.yaml", "versions of CLI, image, Kubernetes, kernels and container runtimes", cluster],
    ["configmap.yaml", "the plugin's configuration", known(snapshot.configMap)],
    ["daemonset.yaml", "the installer's DaemonSet, and the chart's values in it", daemonSet],
    ["nodes.yaml", "kernel, runtime, taints and conditions of each node", nodes.map((node) => nodeState(node, pods))],
    ["events.txt", `Events of namespace ${namespace}`, eventsText(events)],
    ["named-pods.yaml", "pods of other namespaces that check names, with Events", namedPods.map(otherPod)],
    ...pods.map((pod): Part => [`pods/${pod.metadata.name}.yaml`, "the pod's state", installerPod(pod)]),
    ...logs.map(({ pod, container, isPrevious, lines }): Part => {
      const name = `pods/${pod}.${container}${isPrevious ? ".previous" : ""}.log`;
      const about = `the last ${SHOWN_LINES} lines of its ${isPrevious ? "previous " : ""}log`;
      return [name, about, `${lines.slice(-SHOWN_LINES).join("\n")}\n`];
    }),
  ];
}

const runtimeOf = (info: NonNullable<NodeObject["status"]>["nodeInfo"] = {}): string => {
  const { kubeletVersion, containerRuntimeVersion, kernelVersion, osImage, architecture } = info;
  return [kubeletVersion, containerRuntimeVersion, kernelVersion, osImage, architecture].join(", ");
};

const written = (content: unknown): string =>
  typeof content === "string" ? content : stringify(content, { lineWidth: 0, aliasDuplicateObjects: false });

/** The redacted files of an archive; the first one explains the others. Pure. */
export function reportFiles(material: Material): readonly ReportFile[] {
  const files = parts(material).flatMap(([name, about, content]): readonly ReportFile[] => {
    if (content === undefined) return [];
    return [{ name, about, text: written(redact(content)) }];
  });
  const lacking = material.unread.map(({ what, problem }) => `${what}: ${problem}`);
  const unread = {
    name: "unread.txt",
    about: "what could not be read, and why",
    text: redactText(lacking.length === 0 ? "none\n" : `${lacking.join("\n")}\n`),
  };
  const all = [...files, unread];
  const width = Math.max(...all.map(({ name }) => name.length));
  const text = [
    `A report of l5d-cni ${version} on the installation in namespace ${material.namespace}.`,
    "",
    ...all.map(({ name, about }) => `${name.padEnd(width)}  ${about}`),
    "",
    "PEM, JWTs, Bearer tokens, users in URLs and values of variables that the chart does not set are removed.",
    "Names of nodes, namespaces and pods, IP addresses and images are kept.",
    "Read it before you attach it.",
    "",
  ].join("\n");
  return [{ name: "README.txt", about: "this list", text }, ...all];
}
