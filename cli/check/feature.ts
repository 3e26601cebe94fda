import type { LinkerdCniProps } from "../../constructs";
import type { Category, Finding } from "./finding";
import type { CheckedPod, DaemonSet, NodeObject } from "./objects";

/** The namespace of the installer's DaemonSet. */
export interface Nodes {
  readonly daemonSet: DaemonSet;
  readonly namespace: string;
  readonly nodes: readonly NodeObject[];
  /** Pods of any kind that wait for a node. */
  readonly pending: readonly CheckedPod[];
  /** The DaemonSet's pods. */
  readonly own: readonly CheckedPod[];
  /** Names of the nodes with a ready one. */
  readonly ready: ReadonlySet<string>;
}

/** The checks of an optional feature. */
export interface CheckedFeature {
  /** The feature's values, as far as the installer's variables show them. */
  readonly values: (env: ReadonlyMap<string, string | undefined>) => LinkerdCniProps;
  /** Its findings on the nodes. */
  readonly onNodes: (nodes: Nodes, category: Category) => readonly Finding[];
}
