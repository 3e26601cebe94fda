import type { Log } from "../../cni/log";
import { apply, type Change, type Disk, OutOfDate, type Seen } from "./disk";
import { describe } from "./messages";
import { isAsSeen } from "./observe";
import { strayed } from "./ownership";
import type { Places } from "./places";
import type { PluginFile } from "./plugin-file";

/** Makes planned changes of one node's files, and says what it did. */
export class Changer {
  private readonly strays = new Set<string>();

  constructor(
    private readonly tools: {
      readonly places: Places;
      readonly disk: Disk;
      readonly plugin: PluginFile;
      readonly log: Log;
    },
  ) {}

  /** Makes the changes. False where the rest of them is out of date. */
  async run(changes: readonly Change[]): Promise<boolean> {
    for (const change of changes) {
      if (!(await this.make(change))) return false;
      this.tools.log.info(describe(change));
      const message = strayed(change);
      if (message !== undefined && !this.strays.has(message)) this.tools.log.warn(message);
      if (message !== undefined) this.strays.add(message);
    }
    return true;
  }

  private async make(change: Change): Promise<boolean> {
    const { disk, log, places, plugin } = this.tools;
    try {
      const holds = (seen: Seen) => isAsSeen(seen, places);
      await apply(change, disk, { ...plugin, holds });
      return true;
    } catch (error) {
      if (!(error instanceof OutOfDate)) throw error;
      log.debug(`${error.message}: looking again`);
      return false;
    }
  }
}
