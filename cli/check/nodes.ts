import { ApiReach } from "../../cni/contract";
import { isSelected, whyNotPlaced } from "../../kubernetes/placement";
import { docs, runbook } from "../links";
import { ifUnreadable } from "./access";
import { causeOf, notReady, refusalOf, refusalsOf, type Situation, unknownCause, warningOf } from "./causes";
import { Category, type Finding, type Trouble } from "./finding";
import { type CheckedPod, conditionOf, type DaemonSet, isReady, NAME, type NodeObject, nodeOf } from "./objects";
import { known, type Snapshot } from "./snapshot";
import { taintFindings } from "./taint";

const category = new Category("linkerd-cni-nodes");
const NODES = docs("cli.md#nodes");

const CHAINED: Readonly<Record<string, string>> = {
  dropin: "pods are chained by a drop-in beside the node's CNI configuration",
  edit: "pods are chained by an edit of the node's CNI configuration",
  auxiliary: "pods are chained by the auxiliary chain of Multus",
};

/** A DaemonSet of the chart, and the state of its pods and nodes. */
export class Rollout {
  readonly name: string;
  /** Its pods. */
  readonly own: readonly CheckedPod[];
  readonly nodes: readonly NodeObject[];
  /** Names of the nodes with a ready pod. */
  readonly ready: ReadonlySet<string>;
  private readonly desired: number;

  constructor(
    readonly daemonSet: DaemonSet,
    readonly snapshot: Snapshot,
    private readonly link = runbook("LinkerdCNINotReady"),
  ) {
    this.name = daemonSet.metadata.name ?? "";
    this.own = (known(snapshot.pods) ?? []).filter(({ metadata }) =>
      (metadata.ownerReferences ?? []).some(({ uid }) => uid === daemonSet.metadata.uid),
    );
    this.nodes = known(snapshot.nodes) ?? [];
    this.ready = new Set(this.own.filter(isReady).map(nodeOf));
    this.desired = daemonSet.status?.desiredNumberScheduled ?? 0;
  }

  private get template() {
    return this.daemonSet.spec?.template?.spec ?? {};
  }

  private of(pod: CheckedPod): Situation {
    return { pod, daemonSet: this.daemonSet, snapshot: this.snapshot };
  }

  private get isActedOn(): boolean {
    const { metadata, status = {} } = this.daemonSet;
    return (status.observedGeneration ?? 0) >= (metadata.generation ?? 0);
  }

  /** A DaemonSet that does not match any node. */
  private get selectsNothing(): boolean {
    return this.isActedOn && this.desired === 0 && this.own.length === 0;
  }

  /** A DaemonSet's numbers in words, or undefined if they are as expected. */
  unfinished(): Trouble | undefined {
    const { link } = this;
    const { spec, status = {} } = this.daemonSet;
    const { updatedNumberScheduled: updated = 0, numberReady = 0 } = status;
    const wait = `wait (--wait 120), then see: kubectl rollout status -n ${this.snapshot.namespace} daemonset/${this.name}`;
    if (!this.isActedOn) return { problem: "its controller has not processed the last change", remedy: wait, link };
    if (updated < this.desired) {
      const problem = `${this.desired - updated} of ${this.desired} pods are of an older version`;
      if (spec?.updateStrategy?.type !== "OnDelete") return { problem, remedy: wait, link };
      const remedy = `delete them, node by node: kubectl delete pod -n ${this.snapshot.namespace} POD`;
      return { problem: `${problem}, and are replaced only when they are deleted`, remedy, link };
    }
    if (numberReady >= this.desired) return undefined;
    return { problem: `${numberReady} of ${this.desired} pods are ready`, remedy: wait, link };
  }

  private nothingSelected(): Finding {
    const { nodes, template } = this;
    const [first] = nodes;
    const why = first && (whyNotPlaced(template, first) ?? "the DaemonSet's controller has not reported why");
    const told =
      first === undefined
        ? "no node is known"
        : `of ${nodes.length === 1 ? "the only node" : `${nodes.length} nodes`} none fits: ${first.metadata.name}: ${why}`;
    return category.bad(`DaemonSet ${NAME} is rolled out`, {
      problem: `DaemonSet ${NAME} matches no node: ${told}`,
      remedy: "correct the chart's nodeAffinity or tolerations, or label the nodes",
      link: NODES,
    });
  }

  /** Why pods of the DaemonSet cannot be created; an Event older than a pod is out of date. */
  refusal(): Trouble | undefined {
    const { updatedNumberScheduled: updated = 0 } = this.daemonSet.status ?? {};
    const lacksPods = "value" in this.snapshot.pods && this.own.length < this.desired;
    if (updated >= this.desired && !lacksPods) return undefined;
    const newest =
      this.own
        .map(({ metadata }) => metadata.creationTimestamp ?? "")
        .sort()
        .at(-1) ?? "";
    const isLate = refusalsOf(this.daemonSet, this.snapshot).some(
      ({ lastTimestamp }) => (lastTimestamp ?? "") >= newest,
    );
    return isLate ? refusalOf(this.daemonSet, this.snapshot) : undefined;
  }

  /** The older pod that a pod of the rollout replaces, if it is ready. */
  private replacedBy(pod: CheckedPod): CheckedPod | undefined {
    return this.own.find((other) => other !== pod && nodeOf(other) === nodeOf(pod) && isReady(other));
  }

  /** The effect of an unready pod on the rollout, which continues on the other nodes when this pod is ready. */
  private held(pod: CheckedPod, { problem, remedy, ...rest }: Trouble): Trouble {
    const { updatedNumberScheduled: updated = 0 } = this.daemonSet.status ?? {};
    const old = this.replacedBy(pod)?.metadata.name;
    if (old === undefined) return { problem, remedy, ...rest };
    // A node with an old and a new pod counts by its old one.
    const both = this.own.map(nodeOf).filter((node, index, all) => all.indexOf(node) !== index);
    const left = this.desired - updated - new Set(both).size;
    const { namespace } = this.snapshot;
    const isUnscheduled = conditionOf(pod, "PodScheduled")?.status === "False";
    const way = isUnscheduled
      ? `make room for a second pod on node ${nodeOf(pod)}, or let the new pod have the old one's place: kubectl delete pod -n ${namespace} ${old}`
      : `${remedy}; or go back: kubectl rollout undo -n ${namespace} daemonset/${this.name}`;
    return {
      problem:
        left > 0
          ? `${problem}; the rollout waits for it before it goes on to ${left} other node${left === 1 ? "" : "s"}`
          : problem,
      remedy: way,
      ...rest,
    };
  }

  /**
   * Nodes whose pod is not ready. Beside a ready pod it is reported only with a known cause, since it may only need
   * time.
   */
  unready(): readonly (readonly [node: string, Trouble])[] {
    return this.own
      .filter((pod) => !isReady(pod))
      .flatMap((pod) => {
        const node = nodeOf(pod);
        const cause = causeOf(this.of(pod));
        if (cause === undefined && this.ready.has(node)) return [];
        const { problem, ...rest } = this.held(pod, cause ?? unknownCause(this.of(pod)));
        return [[node, { problem: `pod ${pod.metadata.name} is not ready: ${problem}`, ...rest }] as const];
      });
  }

  /** A node without a pod: by a failure if there are fewer pods than wanted, else by the chart's values. */
  private bare(): readonly Finding[] {
    const occupied = new Set(this.own.map(nodeOf));
    const isWanted = this.desired > occupied.size;
    const bare = this.nodes.filter(
      (node) => isSelected(this.template, node) && !occupied.has(node.metadata.name ?? ""),
    );
    return bare.flatMap((node) => {
      const what = `node ${node.metadata.name} has a ready pod`;
      const why = whyNotPlaced(this.template, node);
      if (isWanted && why === undefined) return this.without(what);
      return [
        category.odd(what, {
          problem: `it should not have one${why === undefined ? "" : `, since ${why}`}: meshed pods that start there are not redirected`,
          remedy: "widen the chart's tolerations or nodeAffinity, or keep meshed pods off the node",
          link: NODES,
        }),
      ];
    });
  }

  private without(what: string): readonly Finding[] {
    const refusal = refusalOf(this.daemonSet, this.snapshot);
    const remedy = `see: kubectl describe daemonset -n ${this.snapshot.namespace} ${NAME}`;
    return [
      category.bad(what, {
        problem: `it has no pod${refusal === undefined ? "" : `: ${refusal.problem}`}`,
        remedy: refusal?.remedy ?? remedy,
        link: NODES,
      }),
    ];
  }

  /** Nodes that are not ready; their messages show whether the network is the cause. */
  private broken(told: ReadonlySet<string>): readonly Finding[] {
    return this.nodes
      .filter((node) => isSelected(this.template, node) && !told.has(node.metadata.name ?? ""))
      .flatMap((node) => {
        const problem = notReady(node);
        if (problem === undefined) return [];
        const trouble = { problem, remedy: `see: kubectl describe node ${node.metadata.name}`, link: NODES };
        const what = `node ${node.metadata.name} is ready`;
        return [/network|cni/i.test(problem) ? category.bad(what, trouble) : category.odd(what, trouble)];
      });
  }

  /** Warnings of ready installers. */
  private warned(): readonly Finding[] {
    return this.own.flatMap((pod) => {
      const trouble = warningOf(this.of(pod));
      if (trouble === undefined) return [];
      const isUnreached = trouble.problem.includes(ApiReach.lost);
      const problem = isUnreached ? trouble.problem.replace("this node", `node ${nodeOf(pod)}`) : trouble.problem;
      const what = isUnreached ? "reaches the API server" : "finds the plugin";
      return [category.odd(`node ${nodeOf(pod)} ${what}`, { ...trouble, problem })];
    });
  }

  /** How pods are chained, according to the logs that were read. */
  private chained(): readonly Finding[] {
    const nodes = new Map<string, string[]>();
    for (const pod of this.own) {
      const chaining = this.snapshot.chainings.get(pod.metadata.name ?? "");
      if (chaining !== undefined) nodes.set(chaining, [...(nodes.get(chaining) ?? []), nodeOf(pod)]);
    }
    return [...nodes].map(([chaining, names]) => {
      const [way = "", ...why] = chaining.split(": ");
      return category.good(CHAINED[way] ?? `pods are chained (${way})`, `${names.join(", ")}: ${why.join(": ")}`);
    });
  }

  /** All findings; an unfinished rollout is reported only without other findings. */
  findings(): readonly Finding[] {
    if (this.selectsNothing) return [this.nothingSelected()];
    const unfinished = this.unfinished();
    const {
      desiredNumberScheduled: desired = 0,
      numberReady: ready,
      updatedNumberScheduled: updated,
    } = this.daemonSet.status ?? {};
    const what = `DaemonSet ${NAME} is rolled out`;
    const done =
      unfinished === undefined ? [category.good(what, `${desired} desired, ${ready} ready, ${updated} updated`)] : [];
    const refusal = this.refusal();
    const refused = refusal && category.bad(`DaemonSet ${NAME} can make its pods`, refusal);
    const bare = "value" in this.snapshot.pods ? this.bare() : [];
    const unready = this.unready().map(([node, trouble]) =>
      category.bad(`node ${node} has a ready pod${this.ready.has(node) ? " of this version" : ""}`, trouble),
    );
    const repeats = refused !== undefined && bare.some(({ problem = "" }) => problem.endsWith(refused.problem ?? ""));
    const told = new Set(this.own.filter((pod) => !isReady(pod) && causeOf(this.of(pod)) !== undefined).map(nodeOf));
    const found = [
      ...(refused === undefined || repeats ? [] : [refused]),
      ...unready,
      ...bare,
      ...this.broken(told),
      ...taintFindings(this, category),
      ...this.warned(),
    ];
    const isExplained = found.some(({ result }) => result === "error");
    const { size } = this.ready;
    return [
      ...done,
      ...(size > 0 ? [category.good(size === 1 ? "1 node has a ready pod" : `${size} nodes have a ready pod`)] : []),
      ...this.chained(),
      ...found,
      ...(unfinished === undefined || isExplained ? [] : [category.bad(what, unfinished)]),
    ];
  }
}

/** Whether the plugin is on every node. */
export function nodeFindings(snapshot: Snapshot): readonly Finding[] {
  const { daemonSet, pods, nodes } = snapshot;
  const found = known(daemonSet);
  if (found === undefined) return [];
  return [
    ...[pods, nodes].flatMap((read) => ifUnreadable(category, "every node has a ready pod", read)),
    ...new Rollout(found, snapshot).findings(),
  ];
}
