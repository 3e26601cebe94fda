import type { Log } from "../../cni/log";
import { apply, type Change, type Disk, OutOfDate } from "./disk";
import { describe } from "./messages";
import { isAsSeen } from "./observe";
import { strayed } from "./ownership";
import type { Places } from "./places";

/** Makes planned changes of one node's files, and says what it did. */
export class Changer {
  private readonly strays = new Set<string>();

  constructor(private readonly tools: { readonly places: Places; readonly disk: Disk; readonly log: Log }) {}

  /** Makes the changes. False where the rest of them is out of date. */
  run(changes: readonly Change[]): boolean {
    for (const change of changes) {
      if (!this.make(change)) return false;
      this.tools.log.info(describe(change));
      const message = strayed(change);
      if (message !== undefined && !this.strays.has(message)) this.tools.log.warn(message);
      if (message !== undefined) this.strays.add(message);
    }
    return true;
  }

  private make(change: Change): boolean {
    const { disk, log, places } = this.tools;
    try {
      apply(change, disk, (seen) => isAsSeen(seen, places));
      return true;
    } catch (error) {
      if (!(error instanceof OutOfDate)) throw error;
      log.debug(`${error.message}: looking again`);
      return false;
    }
  }
}
