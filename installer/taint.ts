import { InstallerVariable, PodVariable } from "../cni/contract";
import { reasonOf } from "../cni/errors";
import { Backoff, type BackoffPolicy } from "../kubernetes/backoff";
import { KubernetesClient } from "../kubernetes/client";
import { resources } from "../kubernetes/resources";
import type { Transport } from "../kubernetes/transport";
import type { Taint } from "../kubernetes/types";
import type { Clock } from "../process/clock";
import type { Log } from "../process/log";
import type { SettingsReader } from "../process/settings";

/** One operation of a JSON patch (RFC 6902). */
type Operation =
  | { readonly op: "test"; readonly path: string; readonly value: Taint }
  | { readonly op: "remove"; readonly path: string };

/**
 * Removes only the taints of a key. Each is addressed by its index, and the API server refuses the patch if another
 * taint now has that index. The last index comes first, so that the others stay valid.
 */
export function withoutTaint(taints: readonly Taint[], key: string): readonly Operation[] {
  return taints
    .flatMap((value, index): readonly (readonly Operation[])[] => {
      const path = `/spec/taints/${index}`;
      return value.key === key ? [[{ op: "test", path, value } as const, { op: "remove", path } as const]] : [];
    })
    .reverse()
    .flat();
}

/** The installer's setting: the taint that it removes, and the node. */
export interface NodeTaint {
  readonly node: string;
  readonly key: string;
}

/** Reads the setting; undefined if the installer does not remove a taint. */
export function readNodeTaint(read: Pick<SettingsReader, "optional" | "problems">): NodeTaint | undefined {
  const key = read.optional(InstallerVariable.nodeTaint);
  const node = read.optional(PodVariable.nodeName);
  if (key === undefined) return undefined;
  if (node === undefined) read.problems.push("NODE_TAINT needs NODE_NAME, the node whose taint it is");
  return { node: node ?? "", key };
}

interface StartupTaintProps extends NodeTaint {
  readonly connect: () => Transport;
  readonly log: Log;
  readonly clock: Pick<Clock, "now" | "random">;
}

const DEADLINE_MS = 3_000;
/** For 5,000 nodes that is 17 small requests in a second. */
const LOOK_EVERY_MS = 5 * 60_000;
/** An API server that does not keep up refuses all nodes, which must not ask it even more often. */
const FAILED: BackoffPolicy = { firstMs: 5_000, longestMs: 60_000 };

/**
 * The taint that a node registers with, so that pods do not start before the plugin is installed. A node that is
 * deleted and registers again during this process has it again.
 */
export class StartupTaint {
  private dueAt = 0;
  private lastProblem = "";
  private readonly failed: Backoff;

  constructor(private readonly deps: StartupTaintProps) {
    this.failed = new Backoff(FAILED, deps.clock.random);
  }

  /** Whether to check the node for the taint now. */
  get isDue(): boolean {
    return this.deps.clock.now() >= this.dueAt;
  }

  /** If a check is due, removes the taint from the node; after a failure, the next check is due within a minute. */
  async lift(): Promise<void> {
    const { now } = this.deps.clock;
    if (!this.isDue) return;
    this.dueAt = now() + LOOK_EVERY_MS;
    try {
      await this.remove();
      this.failed.reset();
      this.lastProblem = "";
    } catch (error) {
      this.dueAt = now() + this.failed.next();
      this.say(reasonOf(error));
    }
  }

  private async remove(): Promise<void> {
    const { connect, key, log, node } = this.deps;
    const client = new KubernetesClient(connect(), { deadlineMs: DEADLINE_MS });
    const { spec } = await client.get(resources.nodes, { name: node });
    const body = withoutTaint(spec?.taints ?? [], key);
    if (body.length === 0) return log.debug(`node ${node} has no taint ${key}`);
    await client.patch(resources.nodes, { name: node }, { type: "json", body });
    log.info(`removed taint ${key} from node ${node}: pods that start now are chained`);
  }

  private say(problem: string): void {
    if (problem !== this.lastProblem) this.deps.log.warn(`taint ${this.deps.key} cannot be removed yet: ${problem}`);
    this.lastProblem = problem;
  }
}
