/** The log of calls: what each call did, one line of JSON each. */
import { printable } from "../cni/errors";
import { identify, identifyOpen, Open, openFile, sameFile, sizeOf } from "./files";
import type { Host } from "./port";

/** How a pod is looked up. */
export type LookupWay = "installer" | "direct";

/** One call: a line of the log that the installer follows for its own log and metrics. */
export interface CallRecord {
  readonly time: string;
  readonly verb: string;
  readonly pod?: string;
  readonly decision?: "redirect" | "skip";
  /** Why a pod was left alone, or was decided about without the API server. */
  readonly reason?: string;
  /** How the rules were programmed. */
  readonly mode?: string;
  /** Milliseconds for the evidence, for the rules, and from the start of the process to the result. */
  readonly lookupMs?: number;
  readonly rulesMs?: number;
  readonly ms: number;
  /** Requests for objects of the API server. */
  readonly requests: number;
  /** Who sent them: the installer of the node, or the plugin itself. */
  readonly lookup?: LookupWay;
  /** Why the installer did not. */
  readonly fallback?: string;
  /** The CNI error, if there was one. */
  readonly code?: number;
  readonly error?: string;
}

type Notes = Omit<CallRecord, "time" | "ms" | "requests">;

const MAX_ERROR = 1000;
const tenths = (milliseconds: number) => Math.round(milliseconds * 10) / 10;

/** Collects a call's record while it runs. */
export class Recorder {
  private notes: Notes;
  private requests = 0;

  constructor(
    verb: string,
    private readonly elapsed: () => number,
  ) {
    this.notes = { verb };
  }

  note(notes: Partial<Notes>): void {
    this.notes = { ...this.notes, ...notes };
  }

  countRequest(): void {
    this.requests++;
  }

  /** Runs work and notes how long it took, also when it fails. */
  time<T>(member: "lookupMs" | "rulesMs", work: () => T): T {
    const begin = this.elapsed();
    try {
      return work();
    } finally {
      this.note({ [member]: tenths(this.elapsed() - begin) });
    }
  }

  /** The finished record as one line of JSON. */
  line(): string {
    const { error } = this.notes;
    const record: CallRecord = {
      time: new Date().toISOString(),
      ...this.notes,
      ...(error === undefined ? {} : { error: error.slice(0, MAX_ERROR) }),
      ms: tenths(this.elapsed()),
      requests: this.requests,
    };
    return `${printable(JSON.stringify(record))}\n`;
  }
}

const MAX_BYTES = 4 * 1024 * 1024;
const LOCK_EX = 2;
const LOCK_NB = 4;
const FLAGS = Open.writeOnly | Open.append | Open.create | Open.nonBlocking;

/** Whether a path still leads to an open file: another call may have renamed it. */
function leadsTo(host: Host, path: string, descriptor: number): boolean {
  return sameFile(identify(host, path), identifyOpen(host, descriptor));
}

/** Of several calls that find the log full one renames it; the others would rename the next one, and lose the first. */
function setAside(host: Host, path: string, descriptor: number): void {
  if (host.flock(descriptor, LOCK_EX | LOCK_NB) === 0 && leadsTo(host, path, descriptor)) {
    host.rename(path, `${path}.1`);
  }
}

/**
 * Appends a line, if the installer's pod mounts the directory. A full log replaces the one that has `.1` at its name's
 * end. This never fails: a call's result does not depend on its record.
 */
export function appendLine(host: Host, path: string, line: string): void {
  let descriptor: number | undefined;
  try {
    descriptor = openFile(host, path, FLAGS);
    host.write(descriptor, host.encode(line));
    if (sizeOf(host, descriptor) >= MAX_BYTES) setAside(host, path, descriptor);
  } catch {
    // No directory, no room, no permission: no record.
  } finally {
    if (descriptor !== undefined) host.close(descriptor);
  }
}
