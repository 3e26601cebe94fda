import { closeSync, openSync, readSync, renameSync, type Stats, statSync } from "node:fs";
import { NRI_VERB } from "../../cni/contract";
import type { Log } from "../../process/log";
import { textOf } from "../../system/bytes";
import type { Instruments } from "./instruments";

const ASIDE = ".1";
/** Maximum bytes per read; the rest is read the next time. */
const MAX_READ = 256 * 1024;

/** Maximum bytes of the log; a longer one gets the suffix `.1`, and calls begin another. */
const MAX_BYTES = 4 * 1024 * 1024;

/** Follows a file that other processes append to, and bounds its length. */
export class Tail {
  private inode: number | undefined;
  private offset = 0;
  private rest = "";

  constructor(private readonly path: string) {
    try {
      const stat = statSync(path, { throwIfNoEntry: false });
      this.inode = stat?.ino;
      this.offset = stat?.size ?? 0;
    } catch {
      // The error is returned to the caller; the installer also works without lines.
    }
  }

  /** The last whole lines from before this began, as far as one read reaches. @throws if the file may not be read */
  earlier(): readonly string[] {
    if (this.inode === undefined) return [];
    const length = Math.min(this.offset, MAX_READ);
    this.offset -= length;
    const isCut = this.offset > 0;
    return this.read(this.path, length)
      .split("\n")
      .slice(isCut ? 1 : 0, -1);
  }

  /** The whole lines added since the last call. @throws if the file may not be read */
  lines(): readonly string[] {
    const next = this.next();
    if (next === undefined) return [];
    const { path, stat } = next;
    if (stat.ino !== this.inode || stat.size < this.offset) {
      this.inode = stat.ino;
      this.offset = 0;
      this.rest = "";
    }
    if (path === this.path && this.offset >= MAX_BYTES) {
      // What is left of it is read from there the next time.
      renameSync(path, `${path}${ASIDE}`);
      return [];
    }
    if (stat.size === this.offset) return [];
    const lines = (this.rest + this.read(path, stat.size - this.offset)).split("\n");
    this.rest = (lines.pop() ?? "").slice(0, MAX_READ);
    return lines.filter((line) => line !== "");
  }

  /** The file to read from: the rotated one, until it is read completely. */
  private next(): { readonly path: string; readonly stat: Stats } | undefined {
    const aside = `${this.path}${ASIDE}`;
    const before = statSync(aside, { throwIfNoEntry: false });
    if (before !== undefined && before.ino === this.inode && before.size > this.offset)
      return { path: aside, stat: before };
    const stat = statSync(this.path, { throwIfNoEntry: false });
    return stat && { path: this.path, stat };
  }

  private read(path: string, length: number): string {
    const buffer = new Uint8Array(Math.min(length, MAX_READ));
    const descriptor = openSync(path, "r");
    try {
      const read = readSync(descriptor, buffer, 0, buffer.length, this.offset);
      this.offset += read;
      return textOf(buffer.subarray(0, read));
    } finally {
      closeSync(descriptor);
    }
  }
}

type Entry = Readonly<Record<string, unknown>>;

/** A line as an object; undefined if it is not one. */
export function parse(line: string): Entry | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? (value as Entry) : undefined;
  } catch {
    return undefined;
  }
}

const word = (value: unknown): string => (typeof value === "string" || typeof value === "number" ? String(value) : "");

/** Counts one call of the plugin; the NRI plugin has its own counters. */
function count(entry: Entry, instruments: Instruments): void {
  const verb = word(entry["verb"]);
  if (verb === NRI_VERB) return;
  instruments.pluginCalls.inc({ verb, decision: word(entry["decision"]), code: word(entry["code"]) });
  if (typeof entry["ms"] === "number") instruments.pluginSeconds.observe(entry["ms"] / 1000, { verb });
  const seconds = [
    ["lookupMs", instruments.lookupSeconds],
    ["rulesMs", instruments.rulesSeconds],
  ] as const;
  for (const [name, histogram] of seconds) {
    const milliseconds = entry[name];
    if (typeof milliseconds === "number") histogram.observe(milliseconds / 1000);
  }
  const way = word(entry["lookup"]);
  if (way !== "") instruments.pluginLookups.inc({ way });
  if (typeof entry["requests"] === "number") instruments.pluginRequests.observe(entry["requests"], { verb });
}

interface Readers {
  readonly log: Log;
  /** Copy the lines to the log. */
  readonly isShown: boolean;
  readonly instruments: Instruments;
  /** Also receives each call. */
  readonly events?: { take(entry: Entry): void } | undefined;
}

/** Copies the plugin's lines to the installer's log, counts them, and passes them on. */
export function follow(tail: Tail, { log, isShown, instruments, events }: Readers): void {
  for (const line of tail.lines()) {
    const entry = parse(line);
    if (entry === undefined) {
      if (isShown) log.info(`plugin: ${line}`);
      continue;
    }
    count(entry, instruments);
    events?.take(entry);
    if (!isShown) continue;
    const text = Object.entries(entry).map(
      ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
    );
    log[word(entry["code"]) === "" ? "info" : "error"](`plugin: ${text.join(" ")}`);
  }
}
