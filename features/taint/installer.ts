import { InstallerVariable, PodVariable } from "../../cni/contract";
import { reasonOf } from "../../cni/errors";
import { KubernetesClient } from "../../kubernetes/client";
import { resources } from "../../kubernetes/resources";
import type { Transport } from "../../kubernetes/transport";
import type { Taint } from "../../kubernetes/types";
import type { Log } from "../../process/log";
import type { SettingsReader } from "../../process/settings";

/** One operation of a JSON patch (RFC 6902). */
export type Operation =
  | { readonly op: "test"; readonly path: string; readonly value: Taint }
  | { readonly op: "remove"; readonly path: string };

/**
 * Removes the taints of a key and touches nothing else: each is named by its place, and the patch is refused if
 * another stands there by now. From the last to the first, so that places stay what they are.
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

/** The installer's setting: which taint it removes, and from which node. */
export interface NodeTaint {
  readonly node: string;
  readonly key: string;
}

/** Reads the setting; undefined if taints are none of the installer's business. */
export function readNodeTaint(read: Pick<SettingsReader, "optional" | "problems">): NodeTaint | undefined {
  const key = read.optional(InstallerVariable.nodeTaint);
  const node = read.optional(PodVariable.nodeName);
  if (key === undefined) return undefined;
  if (node === undefined) read.problems.push("NODE_TAINT needs NODE_NAME, the node whose taint it is");
  return { node: node ?? "", key };
}

interface StartupTaintProps extends NodeTaint {
  readonly connect: () => Transport & { close(): void };
  readonly log: Log;
  /** Milliseconds, on a clock that does not go back. */
  readonly now: () => number;
}

const DEADLINE_MS = 3_000;
/** For 5,000 nodes that is 17 small requests in a second. */
const LOOK_EVERY_MS = 5 * 60_000;

/**
 * The taint by which a node is registered, so that no pod starts on it before the plugin is in place. A node that is
 * deleted and registers again while this runs has it again.
 */
export class StartupTaint {
  private dueAt = 0;
  private lastProblem = "";

  constructor(private readonly deps: StartupTaintProps) {}

  /** Whether it is time to look whether the node has it. */
  get isDue(): boolean {
    return this.deps.now() >= this.dueAt;
  }

  /** Something tells that the node may have registered again. */
  lookAgain(): void {
    this.dueAt = 0;
  }

  /** Removes the taint if it is time to look and the node has it; if that fails, it is time again at once. */
  async lift(): Promise<void> {
    if (!this.isDue) return;
    this.dueAt = this.deps.now() + LOOK_EVERY_MS;
    try {
      await this.remove();
      this.lastProblem = "";
    } catch (error) {
      this.lookAgain();
      this.say(reasonOf(error));
    }
  }

  private async remove(): Promise<void> {
    const { connect, key, log, node } = this.deps;
    const send = connect();
    const client = new KubernetesClient(send, { deadlineMs: DEADLINE_MS });
    try {
      const { spec } = await client.get(resources.nodes, { name: node });
      const body = withoutTaint(spec?.taints ?? [], key);
      if (body.length === 0) return log.debug(`node ${node} has no taint ${key}`);
      await client.patch(resources.nodes, { name: node }, { type: "json", body });
      log.info(`removed taint ${key} from node ${node}: pods that start now are chained`);
    } finally {
      send.close();
    }
  }

  private say(problem: string): void {
    if (problem !== this.lastProblem) this.deps.log.warn(`taint ${this.deps.key} cannot be removed yet: ${problem}`);
    this.lastProblem = problem;
  }
}
