/** The pods of our DaemonSets on a node, and the controller that replaces one by a pod of another version. */
import type { Clock } from "./clock";
import type { Process } from "./process";

/** A version of the product: whether its plugin runs on this node, and once or always. */
export type Image = "one" | "two" | "once" | "broken";

/** The pods of our DaemonSets on this node. */
export const WHO = ["A", "B", "C"] as const;
export type Who = (typeof WHO)[number];

/** The pod of an installer; it outlives its containers. */
export interface Pod {
  readonly name: string;
  readonly image: Image;
  process: Process;
  /** When it was told to end. */
  stoppedAt?: number;
}

/** Where pods run. */
interface Kubelet {
  readonly clock: Clock;
  readonly pods: ReadonlyMap<Who, Pod>;
  start(who: Who, image: Image): void;
  stop(who: Who): void;
}

/** `maxSurge: 1`: the new pod becomes ready first; `maxUnavailable: 1`: the old one ends first. */
export type Strategy = "surge" | "unavailable";

/** How often the controller looks. */
const LOOK_MS = 500;

export class Rollout {
  private isOver = false;
  private readonly old: readonly Who[];
  private made: Who | undefined;

  constructor(
    private readonly node: Kubelet,
    private readonly to: Image,
    private readonly by: Strategy,
  ) {
    this.old = WHO.filter((who) => this.isThere(node.pods.get(who)));
    this.look();
  }

  /** Leaves everything as it is. */
  end(): void {
    this.isOver = true;
  }

  private isThere(pod: Pod | undefined): boolean {
    return pod !== undefined && !pod.process.isDead;
  }

  private look(): void {
    if (this.isOver) return;
    const { node, old, by } = this;
    const left = old.filter((who) => this.isThere(node.pods.get(who)));
    if (by === "unavailable") for (const who of left) node.stop(who);
    if (this.made === undefined && (by === "surge" || left.length === 0)) this.make();
    const made = this.made && node.pods.get(this.made);
    if (made !== undefined && left.length === 0) return;
    made?.process.probe("/ready", (status) => {
      if (status === 200) for (const who of left) node.stop(who);
    });
    node.clock.set(() => this.look(), LOOK_MS);
  }

  private make(): void {
    this.made = WHO.find((who) => !this.isThere(this.node.pods.get(who)));
    if (this.made !== undefined) this.node.start(this.made, this.to);
  }
}
