import { reasonOf } from "../../cni/errors";
import { join } from "../../system/path";
import type { Verdict } from "../api/api-connection";
import { isInForce } from "../plan/chaining";
import type { Plan, Wanted } from "../plan/plan";
import type { NodeState } from "../state/node-state";
import type { Paths } from "../state/paths";
import { failureOf, type PluginFile } from "../state/plugin-file";

/** The observed state of a node, and the planned changes. */
export interface Look {
  readonly state: NodeState;
  readonly plan: Plan;
  readonly wanted: Wanted;
}

/** Which installer has the node. */
export type Turn =
  | { readonly is: "ours" }
  | {
      readonly is: "theirs";
      readonly owner: string;
      /** The node's problems; empty if a pod that starts now is chained. */
      readonly wrong: Reasons;
      /** Why this installer does not have the node. */
      readonly why: string;
      /** This installer had the node, and did not lose it by a failure. */
      readonly hadIt: boolean;
    };

/** Checks what a pod that starts now needs to be chained. */
type Part = "plugin" | "lookup" | "chain";
type Reasons = Readonly<Partial<Record<Part, string>>>;

interface OwnershipDeps {
  readonly paths: Paths;
  readonly owner: string;
  readonly plugin: PluginFile;
  /** Copies the image's plugin to the node under a temporary name; returns why it does not run there. */
  readonly stage: () => Promise<string | undefined>;
  /** Whether the API server accepts this pod's token. */
  readonly accepts: () => Promise<Verdict>;
  /** Whether an installer listens for look-ups. */
  readonly isServed: () => Promise<boolean>;
}

/** Time after which another installer takes a node whose installer does not keep it working. */
const OWNER_SILENT_MS = 10_000;

/** Whether pods that start now are chained, by any stanza. */
export function callsPlugin({ state, plan, wanted }: Look): boolean {
  const file = state.configs.find(({ name }) => name === plan.inForce);
  return isInForce(file, state, wanted.runtime);
}

/** Why there is no configuration for the stanza. */
export function whyNoChain({ choice, loopback, findings: [broken] }: Plan, { netDir }: Paths): string {
  if (choice?.problem !== undefined) return choice.problem;
  if (loopback !== undefined) {
    return `${join(netDir, loopback)} comes first, so pods get only the loopback: install a primary CNI, or rename the file to come after the primary's`;
  }
  const why = broken === undefined ? "install a primary CNI" : `${broken.file} ${broken.reason}`;
  return `no valid CNI configuration in ${netDir} yet: ${why}`;
}

/** Between two tries of a plugin that does not run; up to a fifth more, since another installer may try at the same moment. */
const RETRY_MS = 5_000;

/**
 * Decides which of a node's installers is active. An installer keeps a node until another one works: its plugin answers
 * VERSION on this node, the API server accepts its token, and there is a configuration to chain. A version that
 * does not work therefore changes nothing, and the previous one stays active.
 */
export class Ownership {
  private wrongSince: number | undefined;
  /** Whether this image's plugin ran on this node, and when to try again. */
  private tried: { readonly failure: string | undefined; readonly againAt: number } | undefined;

  constructor(private readonly deps: OwnershipDeps) {}

  /** `now` is in milliseconds of a monotonic clock. */
  async turn(look: Look, now: number): Promise<Turn> {
    const { owner } = this.deps;
    const { journal } = look.state;
    if (journal === undefined || journal.left === true || journal.owner === owner) return this.ours();
    const wrong = await this.wrong(look);
    const works = Object.keys(wrong).length === 0;
    const isFormer = journal.former?.includes(owner) === true;
    const lacking = isFormer && works ? {} : await this.lacking(look, now);
    if (!isFormer && Object.keys(lacking).length === 0) return this.ours();
    this.wrongSince = works ? undefined : (this.wrongSince ?? now);
    const isSilent = this.wrongSince !== undefined && now - this.wrongSince >= OWNER_SILENT_MS;
    const parts = Object.keys(wrong) as Part[];
    const isMendable = (part: Part) => lacking[part] === undefined;
    // While the API server does not answer, a chain without look-ups is better than none.
    const isWorth = parts.some(isMendable) && parts.every((part) => part === "lookup" || isMendable(part));
    if (isSilent && isWorth) return this.ours();
    const why = isFormer ? "it took the node back because this pod left it broken" : Object.values(lacking).join("; ");
    return { is: "theirs", owner: journal.owner, wrong, why, hadIt: isFormer && journal.failed !== owner };
  }

  private ours(): Turn {
    this.wrongSince = undefined;
    return { is: "ours" };
  }

  /** The problems of the current node. */
  private async wrong(look: Look): Promise<Reasons> {
    const { state, wanted } = look;
    const { paths, plugin, isServed } = this.deps;
    const failure = await failureOf(paths, plugin, look.plan.choice?.way);
    const isChainWanted = wanted.chained && state.journal?.unchained !== true;
    return {
      ...(failure === undefined ? {} : { plugin: failure }),
      ...((await isServed()) ? {} : { lookup: "it does not answer look-ups" }),
      ...(isChainWanted && !callsPlugin(look) ? { chain: "the configuration in force is not chained" } : {}),
    };
  }

  /** Why this installer cannot repair the node. */
  private async lacking({ plan, wanted }: Look, now: number): Promise<Reasons> {
    const failure = await this.runs(now);
    const refusal = await this.refusal();
    return {
      ...(failure === undefined ? {} : { plugin: failure }),
      ...(refusal === undefined ? {} : { lookup: refusal }),
      ...(wanted.chained && plan.chain === undefined ? { chain: whyNoChain(plan, this.deps.paths) } : {}),
    };
  }

  /**
   * Why this image's plugin does not run on this node. It is not copied at each look: a waiting installer of another
   * version replaces the copy, and both would copy without end.
   */
  private async runs(now: number): Promise<string | undefined> {
    const isCurrent = this.tried !== undefined && (this.tried.failure === undefined || now < this.tried.againAt);
    if (!isCurrent) {
      const againAt = now + RETRY_MS * (1 + Math.random() / 5);
      this.tried = { failure: await this.deps.stage().catch(reasonOf), againAt };
    }
    return this.tried?.failure;
  }

  private async refusal(): Promise<string | undefined> {
    const verdict = await this.deps.accepts();
    if (verdict.kind === "accepted") return undefined;
    return verdict.kind === "refused"
      ? verdict.why
      : "the API server does not answer this pod, so it cannot look pods up";
  }
}
