import { LinkerdContainer, NRI_NAME, SETTING_PREFIX } from "../../cni/contract";
import { docs, runbook } from "../links";
import type { Trouble } from "./finding";
import {
  type CheckedPod,
  type ContainerStatus,
  conditionOf,
  type DaemonSet,
  directoryOf,
  type Event,
  isReady,
  mainContainer,
  type NodeObject,
  nodeOf,
  pathOf,
  statusesOf,
} from "./objects";
import { impossible } from "./platform";
import { known, LINKERDS_PLUGIN, type Snapshot } from "./snapshot";

/** One pod, and the data to judge it. */
export interface Situation {
  readonly pod: CheckedPod;
  readonly daemonSet: DaemonSet;
  readonly snapshot: Snapshot;
}

/** A known text and its remedy. */
interface Known {
  readonly says: RegExp;
  readonly remedy: (match: RegExpExecArray, situation: Omit<Situation, "pod">) => string;
  readonly link?: string;
}

const DIRECTORIES = docs("hosts.md");
const NOT_READY = runbook("LinkerdCNINotReady");

/** The first entry of a table that matches a text. @param usual the link of entries without one */
function lookUp(
  table: readonly Known[],
  problem: string,
  situation: Omit<Situation, "pod">,
  usual = NOT_READY,
): Trouble | undefined {
  for (const { says, remedy, link = usual } of table) {
    const match = says.exec(problem);
    if (match !== null) return { problem, remedy: remedy(match, situation), link };
  }
  return undefined;
}

/** Why the API server refuses to create the DaemonSet's pods. */
const REFUSALS: readonly Known[] = [
  {
    says: /violates PodSecurity/,
    remedy: (_, { snapshot: { namespace } }) =>
      `allow privileged pods in the namespace: kubectl label namespace ${namespace} pod-security.kubernetes.io/enforce=privileged --overwrite`,
  },
  {
    says: /no PriorityClass with name (\S+) was found/,
    remedy: ([, name]) =>
      `create PriorityClass ${name}, or set priorityClassName to an existing one, such as system-node-critical (kubectl get priorityclasses)`,
  },
  {
    says: /quota/,
    remedy: (_, { snapshot: { namespace } }) =>
      `allow them by a ResourceQuota in namespace ${namespace} (GKE wants one for the priority class system-node-critical), or set priorityClassName to ""`,
  },
  {
    says: /security context constraint/,
    remedy: (_, { snapshot: { namespace } }) =>
      `allow them on OpenShift: oc adm policy add-scc-to-user privileged -z linkerd-cni -n ${namespace}`,
  },
  {
    says: /admission webhook "([^"]+)"/,
    remedy: ([, name], { snapshot: { namespace } }) => `exempt namespace ${namespace} from webhook ${name}`,
  },
  {
    says: /serviceaccount "?([\w-]+)"? not found/i,
    remedy: () => "apply the chart again, with the values it was installed with",
    link: docs("cli.md#rights"),
  },
];

/** The Events about pods of a DaemonSet that could not be created. */
export const refusalsOf = ({ metadata }: DaemonSet, { refusals, nriRefusals }: Snapshot): readonly Event[] =>
  known(metadata.name === NRI_NAME ? nriRefusals : refusals) ?? [];

/** The message of the latest Event. */
const latest = (events: readonly Event[]) =>
  [...events].sort((a, b) => (a.lastTimestamp ?? "").localeCompare(b.lastTimestamp ?? "")).at(-1)?.message;

/** Why a DaemonSet cannot create a pod, by the last such Event. */
export function refusalOf(daemonSet: DaemonSet, snapshot: Snapshot): Trouble | undefined {
  const problem = latest(refusalsOf(daemonSet, snapshot));
  if (problem === undefined) return undefined;
  const link = docs("cli.md#nodes");
  const remedy = `see: kubectl describe daemonset -n ${snapshot.namespace} ${daemonSet.metadata.name}`;
  return lookUp(REFUSALS, problem, { daemonSet, snapshot }, link) ?? { problem, remedy, link };
}

/** The remedy if the API server knows the account but does not allow the request. */
const FORBIDDEN =
  "a ClusterRole or its binding is missing or changed: apply the chart again, with the values it was installed with";

const UNREACHABLE =
  "let pods of this node reach that address (network policies, routes, kube-proxy or its replacement); meshed pods that no annotation describes do not start there";

/** Messages of the container runtime if the plugin fails to set a pod's network up. */
const SANDBOXES: readonly Known[] = [
  {
    says: /failed to find plugin "linkerd-cni(?:-redirect)?" in path \[([^\]]*)\]/,
    remedy: ([, paths], { daemonSet }) => {
      const [first = ""] = (paths ?? "").split(/[ ,]+/);
      const now = directoryOf(daemonSet, "cni-bin-dir");
      const moved = "uninstall, and install again with";
      return now === first
        ? `the plugin's file is gone from ${first}: kubectl rollout restart -n ${daemonSet.metadata.namespace} daemonset/linkerd-cni`
        : `destCNIBinDir is ${now}, where the container runtime does not look: ${moved} destCNIBinDir=${first}`;
    },
    link: DIRECTORIES,
  },
  {
    says: /\b403\b/,
    remedy: () => FORBIDDEN,
    link: docs("cli.md#rights"),
  },
  {
    says: /cannot look up \S+ \S+: API server/,
    remedy: () => UNREACHABLE,
    link: runbook("LinkerdCNIApiUnreachable"),
  },
  {
    says: /does not answer|\b401\b/,
    remedy: () => "check that the linkerd-cni pod on this node is running and ready: it looks pods up for the plugin",
    link: runbook("LinkerdCNIAddErrors"),
  },
  {
    says: /config\.linkerd\.io\/(\S+) on (pod|namespace) (\S+):/,
    remedy: ([, name, kind, where]) => `correct annotation ${SETTING_PREFIX}${name} on ${kind} ${where}`,
    link: runbook("LinkerdCNIAddErrors"),
  },
  {
    says: /linkerd-cni/,
    remedy: () => "read the plugin's log, and run l5d-cni explain NAMESPACE/POD",
    link: runbook("LinkerdCNIAddErrors"),
  },
];

/** Why a pod has no network, if the plugin is the cause. */
export function sandboxTrouble(situation: Situation): Trouble | undefined {
  const { uid } = situation.pod.metadata;
  const events = (known(situation.snapshot.sandboxFailures) ?? []).filter(
    ({ involvedObject }) => uid !== undefined && involvedObject?.uid === uid,
  );
  const plugins = /(?:plugin type|failed to find plugin)[= ]"linkerd-cni(?:-redirect)?".*/s;
  const told = plugins.exec(latest(events) ?? "")?.[0];
  const found = told === undefined ? undefined : lookUp(SANDBOXES, told, situation);
  if (found === undefined) return undefined;
  const named = (text: string) => text.replaceAll("this node", `node ${nodeOf(situation.pod)}`);
  return { ...found, problem: named(found.problem), remedy: named(found.remedy) };
}

const NRI = docs("nri.md#requirements");

/** Messages of the installer or the NRI plugin about why it is not ready. */
const OWN_WORDS: readonly Known[] = [
  {
    says: /there is no socket (\S+)\/nri\.sock/,
    remedy: ([, directory]) =>
      `turn NRI on in the configuration of the node's container runtime, which must be containerd 2.0, CRI-O 1.30 or later; if its socket is not in ${directory}, set nri.socketDir`,
    link: NRI,
  },
  {
    says: /nri\.sock.*(?:EACCES|EPERM|denied|not permitted)/,
    remedy: () => "let the container use the socket: set platform, or if SELinux denies it, seLinuxOptions.type=spc_t",
    link: NRI,
  },
  {
    says: /refuses the plugin|closed the connection|did not name its pods|nri\.sock/,
    remedy: () => "read what the node's container runtime logs about NRI; the plugin connects again by itself",
    link: NRI,
  },
  {
    says: /this node cannot reach the API server/,
    remedy: () => UNREACHABLE,
    link: runbook("LinkerdCNIApiUnreachable"),
  },
  {
    says: /chaining is auxiliary/,
    remedy: () => "run l5d-cni check --pre, and set the values that it prints for this Multus",
    link: docs("multus.md#the-auxiliary-chain"),
  },
  {
    says: /no valid CNI configuration in (\S+)/,
    remedy: ([, directory]) =>
      `set destCNINetDir to the directory from which the node's container runtime reads its configuration, which ${directory} is not; or install a primary CNI, if the node has none`,
    link: DIRECTORIES,
  },
  {
    says: /(\/\S+) .*it comes first/,
    remedy: ([, file]) =>
      `correct ${file} on the node, or move it out of the directory: the installer goes on by itself`,
  },
  {
    says: /which the chain calls/,
    remedy: (_, { daemonSet }) =>
      `set multipleCNIBinDirs=true if the node's container runtime searches several directories for plugins, destCNIBinDir (${directoryOf(daemonSet, "cni-bin-dir")}) among them; otherwise uninstall, and install again with destCNIBinDir set to the one that it searches`,
    link: DIRECTORIES,
  },
  {
    says: /destCNIBinDir/,
    remedy: (_, { daemonSet }) =>
      `uninstall, and install again with destCNIBinDir (now ${directoryOf(daemonSet, "cni-bin-dir")}) set to the directory in which the node's container runtime looks for plugins`,
    link: DIRECTORIES,
  },
  {
    says: /set destCNINetDir/,
    remedy: () => "uninstall, and install again with destCNINetDir set to the node's directory",
    link: DIRECTORIES,
  },
  {
    says: /contested/,
    remedy: () => "find the other agent that writes that file, and configure it to leave the file alone",
    link: runbook("LinkerdCNIConfigContested"),
  },
  {
    says: /\(403\)/,
    remedy: () => FORBIDDEN,
    link: docs("cli.md#rights"),
  },
  {
    says: /\(401\)/,
    remedy: (_, { snapshot: { namespace } }) =>
      `if it stays, delete the pod, so that the kubelet gives the next one a new token (kubectl delete pod -n ${namespace}); check the node's clock`,
    link: runbook("LinkerdCNINotReady"),
  },
  {
    says: /does not answer VERSION/,
    remedy: () => "go back to the previous version (helm rollback), or fix the cause named above on the node",
  },
  {
    says: /read-only|not writable|bytes left|ENOSPC|EROFS|EACCES|EPERM/,
    remedy: () =>
      "mount that directory of the node writable, and free some space on it; if SELinux denies it, set privileged",
  },
];

/** A log message without its prefix, and with the node's paths. */
const wordsOf = (warning: string) => warning.replace(/^\S+: \w+: /, "").replace(/(^|[\s"(])\/host(?=\/)/g, "$1");

const stoppedOf = ({ state }: ContainerStatus) => state?.waiting ?? state?.terminated;

/** The container that keeps a pod from being ready; the main one if unknown. */
const unreadyContainer = (pod: CheckedPod): string =>
  statusesOf(pod).find(({ ready }) => ready !== true)?.name ?? mainContainer(pod);

const logOf = ({ pod, snapshot: { namespace } }: Situation, container = unreadyContainer(pod)) =>
  `see: kubectl logs -n ${namespace} ${pod.metadata.name} -c ${container}`;

function ownWords(situation: Situation): string | undefined {
  const { pod, snapshot } = situation;
  if (unreadyContainer(pod) !== mainContainer(pod)) return undefined;
  const warning = snapshot.warnings.get(pod.metadata.name ?? "");
  return warning === undefined ? undefined : wordsOf(warning);
}

const nodeOfPod = ({ pod, snapshot }: Situation): NodeObject | undefined =>
  known(snapshot.nodes)?.find(({ metadata }) => metadata.name === nodeOf(pod));

/** The message of a node that is not ready. */
export function notReady(node: NodeObject): string | undefined {
  const ready = conditionOf(node, "Ready");
  if (ready === undefined || ready.status === "True") return undefined;
  return `node ${node.metadata.name} is NotReady: ${ready.message ?? ready.reason ?? "it does not say why"}`;
}

/** A container that does not run, with its message. */
function stoppedContainer(pod: CheckedPod, isMeant: (status: ContainerStatus) => boolean) {
  const found = statusesOf(pod).find(
    (status) => status.ready !== true && stoppedOf(status) !== undefined && isMeant(status),
  );
  if (found === undefined) return undefined;
  const { reason = "stopped", message } = stoppedOf(found) ?? {};
  return { ...found, words: `container ${found.name}: ${reason}${message === undefined ? "" : `: ${message}`}` };
}

const imageFrom = (pod: CheckedPod, { name, image }: ContainerStatus) =>
  pod.spec?.containers?.find((each) => each.name === name)?.image ?? image ?? "its image";

const NO_IMAGE = /^(?:Err.*Image.*|ImagePullBackOff|ImageInspectError|InvalidImageName|RegistryUnavailable)$/;
const NO_PROGRAM = /no such file or directory|executable file not found/;

/** Why the pod of a node is not ready: the first that applies is the cause. */
const CAUSES: readonly ((situation: Situation) => Trouble | undefined)[] = [
  function lostNode(situation) {
    const node = nodeOfPod(situation);
    if (node === undefined || conditionOf(node, "Ready")?.status !== "Unknown") return undefined;
    const remedy = `see that the kubelet of ${node.metadata.name} runs and reaches the API server`;
    return { problem: notReady(node) ?? "", remedy, link: NOT_READY };
  },
  function impossibleNode(situation) {
    const node = nodeOfPod(situation);
    const problem = node && impossible(node);
    if (problem === undefined) return undefined;
    const remedy = `exclude node ${node?.metadata.name} by the chart's nodeAffinity, and keep meshed pods off it`;
    return { problem, remedy, link: docs("cli.md#before-an-installation") };
  },
  function unscheduled({ pod, snapshot }) {
    const scheduled = conditionOf(pod, "PodScheduled");
    if (scheduled?.status !== "False") return undefined;
    const remedy = `see: kubectl describe pod -n ${snapshot.namespace} ${pod.metadata.name}; resources (values resources.cpu and resources.memory) and priorityClassName decide whether it fits`;
    return { problem: scheduled.message ?? "it has no node", remedy, link: docs("cli.md#nodes") };
  },
  function image({ pod }) {
    const found = stoppedContainer(pod, (status) => NO_IMAGE.test(stoppedOf(status)?.reason ?? ""));
    if (found === undefined) return undefined;
    const remedy = `see that node ${nodeOf(pod)} can pull ${imageFrom(pod, found)}: values image.name, image.version and imagePullSecrets`;
    return { problem: found.words, remedy, link: docs("cli.md#nodes") };
  },
  function foreignImage({ pod, snapshot }) {
    const isPlugin = LINKERDS_PLUGIN.test(snapshot.warnings.get(pod.metadata.name ?? "") ?? "");
    const isForeign = ({ name, state, lastState }: ContainerStatus) =>
      (isPlugin && name === mainContainer(pod)) ||
      [state?.waiting, state?.terminated, lastState?.terminated].some((each) => NO_PROGRAM.test(each?.message ?? ""));
    const found = stoppedContainer(pod, isForeign);
    if (found === undefined) return undefined;
    return {
      problem: `container ${found.name}: image ${imageFrom(pod, found)} is not this project's: it lacks the programs that the chart starts; it may be linkerd's own under another name`,
      remedy: "set image.name and image.version to this project's image, or to your mirror of it",
      link: docs("cli.md#nodes"),
    };
  },
  function container({ pod, snapshot }) {
    const found = stoppedContainer(pod, (status) => stoppedOf(status)?.reason?.endsWith("ConfigError") === true);
    if (found === undefined) return undefined;
    const remedy = `apply the chart again; see: kubectl describe pod -n ${snapshot.namespace} ${pod.metadata.name}`;
    return { problem: found.words, remedy, link: NOT_READY };
  },
  function memory({ pod }) {
    const isKilled = ({ state, lastState }: ContainerStatus) =>
      [state?.terminated, lastState?.terminated].some((each) => each?.reason === "OOMKilled");
    const found = statusesOf(pod).find((status) => status.ready !== true && isKilled(status));
    if (found === undefined) return undefined;
    const remedy =
      "raise resources.memory.limit (for the repair controller repairController.resources.memory.limit, for the NRI plugin nri.resources.memory.limit)";
    return {
      problem: `container ${found.name}: OOMKilled: it needs more memory than its limit`,
      remedy,
      link: NOT_READY,
    };
  },
  sandboxTrouble,
  function ownTrouble(situation) {
    const words = ownWords(situation);
    return words === undefined ? undefined : lookUp(OWN_WORDS, `it says: ${words}`, situation);
  },
  function stopped(situation) {
    const found = stoppedContainer(situation.pod, ({ state }) => state?.waiting?.reason !== "ContainerCreating");
    if (found === undefined || found.state?.waiting?.reason === "PodInitializing") return undefined;
    const words = ownWords(situation);
    const problem = words === undefined ? found.words : `${found.words}; it says: ${words}`;
    return { problem, remedy: logOf(situation, found.name), link: NOT_READY };
  },
  function otherWords(situation) {
    const words = ownWords(situation);
    return words === undefined
      ? undefined
      : { problem: `it says: ${words}`, remedy: logOf(situation), link: NOT_READY };
  },
  function brokenNode(situation) {
    const node = nodeOfPod(situation);
    const problem = node && notReady(node);
    if (problem === undefined) return undefined;
    return { problem, remedy: `see: kubectl describe node ${nodeOf(situation.pod)}`, link: NOT_READY };
  },
];

/** Why a pod of the DaemonSet is not ready; undefined if it may only need time. */
export function causeOf(situation: Situation): Trouble | undefined {
  if (situation.pod.metadata.deletionTimestamp !== undefined) return undefined;
  for (const cause of CAUSES) {
    const found = cause(situation);
    if (found !== undefined) return { ...found, problem: found.problem.replaceAll("\n", " ") };
  }
  return undefined;
}

/** The message about a pod that is not ready for an unknown reason. */
export function unknownCause(situation: Situation): Trouble {
  const { metadata } = situation.pod;
  const said = conditionOf(situation.pod, "Ready")?.message ?? "it has not reported to be ready";
  const problem = metadata.deletionTimestamp === undefined ? said.replaceAll("\n", " ") : "it is being deleted";
  return { problem, remedy: logOf(situation), link: NOT_READY };
}

/** A warning of a ready installer: the container runtime may look for plugins elsewhere. */
export function warningOf(situation: Situation): Trouble | undefined {
  const { pod, snapshot } = situation;
  const warning = isReady(pod) ? snapshot.warnings.get(pod.metadata.name ?? "") : undefined;
  return warning === undefined ? undefined : lookUp(OWN_WORDS, wordsOf(warning), situation);
}

/** Exit code of the validator if connections of its pod are not redirected. */
export const NOT_REDIRECTED = 95;

/** Whether a pod's validator has found that its connections are not redirected. */
export const isUnchained = (pod: CheckedPod): boolean =>
  (pod.status?.initContainerStatuses ?? []).some(
    ({ name, ready, state, lastState }) =>
      name === LinkerdContainer.validator &&
      ready !== true &&
      [state?.terminated, lastState?.terminated].some((each) => each?.exitCode === NOT_REDIRECTED),
  );

/** A pod and how many others, for a message: `shop/web-1 and 3 others`. */
export function severalText(pods: readonly CheckedPod[]): string {
  const [first, ...others] = pods.map(pathOf);
  if (others.length === 0) return first ?? "";
  return `${first} and ${others.length} other${others.length === 1 ? "" : "s"}`;
}
