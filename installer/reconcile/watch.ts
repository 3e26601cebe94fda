import { type FSWatcher, statSync, watch as watchDirectory } from "node:fs";
import { reasonOf } from "../../cni/errors";

interface Armed {
  readonly inode: number;
  readonly close: () => void;
}

/** A burst of changes counts as one. */
const BURST_MS = 40;

/**
 * Watches directories. {@link Watcher.arm} sets up again a watch that the kernel refuses (inotify instances used up) or
 * whose directory was replaced; until then the caller must poll.
 */
export class Watcher {
  private readonly armed = new Map<string, Armed>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly refused = new Map<string, string>();

  constructor(
    private readonly directories: () => readonly string[],
    private readonly changed: () => void,
    private readonly watch: (directory: string, changed: () => void) => FSWatcher = watchDirectory,
  ) {}

  /** Sets up missing watches. Returns the directories that cannot be watched, and why. */
  arm(): ReadonlyMap<string, string> {
    const wanted = this.directories();
    for (const directory of this.armed.keys()) if (!wanted.includes(directory)) this.disarm(directory);
    for (const directory of this.refused.keys()) if (!wanted.includes(directory)) this.refused.delete(directory);
    for (const directory of wanted) this.armOne(directory);
    return this.refused;
  }

  close(): void {
    clearTimeout(this.timer);
    for (const { close } of this.armed.values()) close();
    this.armed.clear();
  }

  private armOne(directory: string): void {
    try {
      const inode = statSync(directory, { throwIfNoEntry: false })?.ino;
      if (inode !== undefined && this.armed.get(directory)?.inode === inode) return;
      this.disarm(directory);
      if (inode === undefined) throw new Error("the directory does not exist");
      const watcher = this.watch(directory, () => this.soon());
      watcher.on("error", (error) => this.lose(directory, error));
      this.armed.set(directory, { inode, close: () => watcher.close() });
      this.refused.delete(directory);
    } catch (error) {
      this.lose(directory, error);
    }
  }

  private lose(directory: string, error: unknown): void {
    this.disarm(directory);
    this.refused.set(directory, reasonOf(error));
  }

  private disarm(directory: string): void {
    this.armed.get(directory)?.close();
    this.armed.delete(directory);
  }

  private soon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.changed();
    }, BURST_MS);
  }
}
