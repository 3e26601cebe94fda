import { statSync } from "node:fs";
import type { Log } from "../../process/log";
import { apart } from "../../system/child";
import { dirname } from "../../system/path";
import type { Change } from "../plan/change";
import type { Owner } from "../state/node-state";
import { isAsSeen } from "../state/observe";
import { type Paths, TEMPORARY } from "../state/paths";
import type { PluginFile } from "../state/plugin-file";
import { apply, type Disk, isReread, OutOfDate, stage } from "./disk";

const DONE = {
  write: "wrote",
  install: "wrote",
  keep: "wrote",
  link: "wrote",
  mkdir: "made",
  rmdir: "removed",
  remove: "removed",
};

/** A change in words, for the log. */
function describe(change: Change): string {
  if (change.do === "reread") return `made the container runtime read ${dirname(change.path)} again`;
  if (change.do === "aside" || change.do === "restore") return `renamed ${change.from} to ${change.path}`;
  return `${DONE[change.do]} ${change.path}`;
}

const text = ({ uid, gid }: Owner): string => `${uid}:${gid}`;

/** The warning if a file did not get its owner: without CAP_CHOWN the installer cannot set it. */
function wrongOwner(change: Change): string | undefined {
  if ((change.do !== "write" && change.do !== "keep") || change.owner === undefined) return undefined;
  const found = statSync(change.path, { throwIfNoEntry: false });
  if (found === undefined || text(found) === text(change.owner)) return undefined;
  return `${change.path} belongs to ${text(found)} instead of ${text(change.owner)}: restoring the owner needs CAP_CHOWN (value privileged)`;
}

/** Applies planned changes of a node's files, and logs them. */
export class Changer {
  private readonly warned = new Set<string>();
  private staging: Promise<string | undefined> | undefined;

  constructor(
    private readonly deps: {
      readonly paths: Paths;
      readonly disk: Disk;
      readonly plugin: PluginFile;
      readonly log: Log;
    },
  ) {}

  /**
   * Applies the changes. Returns false if the remaining ones are out of date. @throws if one fails, or if the plugin to
   * install does not run: then nothing is changed
   */
  async run(changes: readonly Change[]): Promise<boolean> {
    if (changes.length === 0) return true;
    const { disk, log, paths, plugin } = this.deps;
    const install = changes.find((change) => change.do === "install");
    // Only a file that ran in its directory replaces the plugin.
    const why = install && (await this.stage());
    if (why !== undefined) throw new Error(`${why}; ${install?.path} stays as it is`);
    const { count, failure } = await apply(changes, disk, (seen) => isAsSeen(seen, paths));
    for (const change of changes.slice(0, count)) {
      if (change.do === "install") plugin.renamed(`${change.path}${TEMPORARY}`, change.path);
      this.report(change);
    }
    if (failure === undefined) return true;
    if (failure.code !== OutOfDate.code) throw Object.assign(new Error(failure.message), failure);
    log.debug(`${failure.message}: looking again`);
    return false;
  }

  /**
   * Copies the image's plugin to the node under temporary names, unless the node has it, and returns why it does not run
   * there; see {@link stage}.
   */
  stage(): Promise<string | undefined> {
    this.staging ??= this.stageEach().finally(() => {
      this.staging = undefined;
    });
    return this.staging;
  }

  /** Waits for a copy that has begun. */
  async staged(): Promise<void> {
    await this.staging?.catch(() => undefined);
  }

  /** Removes the files that {@link stage} left. */
  async unstage(): Promise<void> {
    const { disk, paths } = this.deps;
    await apart(() => {
      for (const path of paths.plugins) disk.remove(`${path}${TEMPORARY}`);
    });
  }

  /**
   * Makes the runtime read its configuration again, and returns whether it reads a folder of drop-ins; undefined if
   * unknown.
   */
  isRead(folder: string): Promise<boolean | undefined> {
    return isReread(this.deps.paths.reread, folder, this.deps.disk);
  }

  private async stageEach(): Promise<string | undefined> {
    const { disk, paths, plugin } = this.deps;
    for (const path of paths.plugins) {
      const isCopy = plugin.isCopy(paths.image, path);
      const why = await (isCopy ? plugin.failure(path, paths.image) : stage(paths.image, path, disk, plugin));
      if (why !== undefined) return why;
    }
    return undefined;
  }

  private report(change: Change): void {
    const { log } = this.deps;
    log.info(describe(change));
    const message = wrongOwner(change);
    if (message !== undefined && !this.warned.has(message)) log.warn(message);
    if (message !== undefined) this.warned.add(message);
  }
}
