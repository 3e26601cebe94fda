import { type Plan, setAside } from "../plan/plan";
import type { NodeState } from "../state/node-state";

/** How long a file may be half-written, or missing between delete and create, before its absence counts. */
const HALF_WRITTEN_MS = 1_000;

/**
 * Keeps the chain from moving to the next configuration while the owner writes the first one: an invalid or missing
 * file gets a moment to become valid. Serves every way to chain the runtime's own configuration: the name of the list is
 * also that of a drop-in's folder.
 */
export class SettleDelay {
  private active: string | undefined;
  private since: { readonly what: string; readonly at: number } | undefined;

  /** The plan has been applied. */
  settled(plan: Plan): void {
    this.active = plan.active;
    this.since = undefined;
  }

  /** Milliseconds until the plan may be applied. */
  waitMs(state: NodeState, plan: Plan, now: number): number {
    const what = this.oddity(state, plan);
    if (what === undefined) {
      this.since = undefined;
      return 0;
    }
    if (this.since?.what !== what) this.since = { what, at: now };
    return Math.max(0, this.since.at + HALF_WRITTEN_MS - now);
  }

  private oddity(state: NodeState, plan: Plan): string | undefined {
    if (plan.active === undefined || plan.active === this.active) return undefined;
    const broken = plan.findings.map(({ file }) => file);
    const present = [...state.configs.map(({ name }) => name), ...setAside(state)];
    const gone = this.active !== undefined && !present.includes(this.active);
    return broken.length > 0 || gone ? [plan.active, ...broken, gone].join(" ") : undefined;
  }
}
