import { apiFinding } from "../check/access";
import type { Finding } from "../check/finding";
import { inspect } from "../check/inspect";
import {
  type CheckedPod,
  type ContainerStatus,
  type Event,
  LOG_LINES,
  pathOf,
  statusesOf,
  unreadyFirst,
} from "../check/objects";
import { known, read, type Snapshot, takeSnapshot, unreadParts } from "../check/snapshot";
import { type Kubectl, KubectlError } from "../kubectl";

/** A log of one container. */
export interface ContainerLog {
  readonly pod: string;
  readonly container: string;
  /** Whether it is of the previous run. */
  readonly isPrevious: boolean;
  readonly lines: readonly string[];
}

/** A pod of another namespace that a check names. */
export interface NamedPod {
  readonly pod: CheckedPod;
  readonly events: readonly Event[];
}

/** A part that could not be read, and why. */
interface Unread {
  readonly what: string;
  readonly problem: string;
}

/** Everything that a report is made from, before redaction. */
export interface Material {
  readonly namespace: string;
  readonly findings: readonly Finding[];
  /** What `kubectl version` prints. */
  readonly versions: unknown;
  readonly snapshot: Snapshot;
  readonly logs: readonly ContainerLog[];
  readonly events: readonly Event[];
  readonly namedPods: readonly NamedPod[];
  readonly unread: readonly Unread[];
}

interface Extent {
  readonly namespace: string;
  /** Number of pods whose logs are read, unready ones first. */
  readonly logs: number;
}

/** Number of concurrent commands. */
const WORKERS = 6;
const MOST_NAMED_PODS = 10;

async function inTurn<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<readonly R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async () => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as T);
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
  return results;
}

/** Whether the previous run has a log. */
const hasPrevious = ({ restartCount = 0, lastState }: ContainerStatus): boolean =>
  restartCount > 0 || lastState?.terminated !== undefined;

/** Whether a container has run and so has a log. */
const hasRun = ({ state, lastState }: ContainerStatus): boolean =>
  state?.running !== undefined || state?.terminated !== undefined || lastState?.terminated !== undefined;

/** Reads one cluster for a report. A part that cannot be read is noted, and the rest goes on. */
class Gatherer {
  readonly unread: Unread[] = [];

  constructor(
    private readonly kubectl: Kubectl,
    private readonly extent: Extent,
  ) {}

  private async read<T>(what: string, answer: Promise<T>): Promise<T | undefined> {
    const found = await read(what, answer);
    if ("problem" in found) this.unread.push({ what, problem: found.problem });
    return known(found);
  }

  /** The parts missing from the snapshot. */
  note(snapshot: Snapshot): void {
    this.unread.push(...unreadParts(snapshot).map(([what, { problem }]) => ({ what, problem })));
  }

  async versions(): Promise<unknown> {
    const text = await this.read("versions", this.kubectl.run("version", "--output=json"));
    try {
      return JSON.parse(text ?? "null");
    } catch {
      return text;
    }
  }

  private async log(pod: string, container: string, isPrevious: boolean): Promise<ContainerLog | undefined> {
    const args = ["logs", pod, `--namespace=${this.extent.namespace}`, `--container=${container}`];
    const given = [...args, `--tail=${LOG_LINES}`, ...(isPrevious ? ["--previous"] : [])];
    const what = `log of pod ${pod}, container ${container}${isPrevious ? ", previous run" : ""}`;
    const text = await this.read(what, this.kubectl.run(...given));
    return text === undefined ? undefined : { pod, container, isPrevious, lines: text.replace(/\n$/, "").split("\n") };
  }

  async logs(pods: readonly CheckedPod[]): Promise<readonly ContainerLog[]> {
    const sorted = unreadyFirst(pods);
    const left = sorted.slice(this.extent.logs);
    if (left.length > 0) {
      const problem = `logs of ${this.extent.logs} pods are read: --logs ${sorted.length} reads all`;
      this.unread.push({ what: `logs of ${left.length} more pods`, problem });
    }
    const wanted = sorted.slice(0, this.extent.logs).flatMap((pod) =>
      statusesOf(pod).flatMap((status) => {
        const { name: container } = status;
        const { name = "" } = pod.metadata;
        return [
          ...(hasRun(status) ? [{ name, container, isPrevious: false }] : []),
          ...(hasPrevious(status) ? [{ name, container, isPrevious: true }] : []),
        ];
      }),
    );
    const logs = await inTurn(wanted, ({ name, container, isPrevious }) => this.log(name, container, isPrevious));
    return logs.filter((log) => log !== undefined);
  }

  async events(): Promise<readonly Event[]> {
    const { namespace } = this.extent;
    const what = `Events of namespace ${namespace}`;
    return (await this.read(what, this.kubectl.list<Event>({ kind: "events", namespace }))) ?? [];
  }

  /** Pods of other namespaces that the findings name, with their Events. */
  namedPods(findings: readonly Finding[], pending: readonly CheckedPod[]): Promise<readonly NamedPod[]> {
    const said = findings.map(({ problem = "", remedy = "" }) => `${problem} ${remedy}`).join("\n");
    const others = pending.filter(({ metadata }) => metadata.namespace !== this.extent.namespace);
    const named = others.filter((pod) => said.includes(pathOf(pod))).slice(0, MOST_NAMED_PODS);
    return inTurn(named, async (pod) => {
      const { namespace = "", name = "" } = pod.metadata;
      const fieldSelector = `involvedObject.kind=Pod,involvedObject.name=${name}`;
      const asked = this.kubectl.list<Event>({ kind: "events", namespace, fieldSelector });
      return { pod, events: (await this.read(`Events of pod ${namespace}/${name}`, asked)) ?? [] };
    });
  }
}

/** Whether the user may read any part of the installation or of the nodes. */
const isEmpty = ({ daemonSet, configMap, pods, nodes }: Snapshot): boolean =>
  [daemonSet, configMap, pods, nodes].every((part) => "problem" in part);

/** Reads the material of a report. @throws a KubectlError if nothing can be read */
export async function gather(kubectl: Kubectl, extent: Extent): Promise<Material> {
  const { namespace } = extent;
  const gatherer = new Gatherer(kubectl, extent);
  const answers = await apiFinding(kubectl);
  const nothing = (problem = "") => new KubectlError(`no report, since nothing can be read: ${problem}`);
  if (answers.result === "error") throw nothing(answers.problem);
  const snapshot = await takeSnapshot(kubectl, namespace);
  if (isEmpty(snapshot) && "problem" in snapshot.daemonSet) throw nothing(snapshot.daemonSet.problem);
  gatherer.note(snapshot);
  const findings = [answers, ...inspect(snapshot)];
  const [versions, logs, events, namedPods] = await Promise.all([
    gatherer.versions(),
    gatherer.logs(known(snapshot.pods) ?? []),
    gatherer.events(),
    gatherer.namedPods(findings, known(snapshot.pending) ?? []),
  ]);
  return { namespace, findings, versions, snapshot, logs, events, namedPods, unread: gatherer.unread };
}
