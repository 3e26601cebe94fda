/** The log of calls, one line of JSON for each call. */
import { printable } from "../cni/errors";
import { Open, openFile, sizeOf } from "./files";
import type { Host } from "./port";

/** One call: a line of the log, which the installer follows for its log and metrics. */
export interface CallRecord {
  readonly time: string;
  readonly verb: string;
  readonly pod?: string;
  readonly decision?: "redirect" | "skip";
  /** Why a pod was skipped, or decided without the API server. */
  readonly reason?: string;
  /** The mode of programming the rules. */
  readonly mode?: string;
  /** Milliseconds for the evidence, for the rules, and from the start of the process to the result. */
  readonly lookupMs?: number;
  readonly rulesMs?: number;
  readonly ms: number;
  /** Requests for objects of the API server. */
  readonly requests: number;
  /** What a look-up was decided by: the installer's answer, or without one the pod's annotations; see `reason`. */
  readonly lookup?: "installer" | "annotations";
  /** The CNI error, if any. */
  readonly code?: number;
  readonly error?: string | undefined;
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

  /** Runs a function and notes its duration, even if it fails. */
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
    const record: CallRecord = {
      time: new Date().toISOString(),
      ...this.notes,
      error: this.notes.error?.slice(0, MAX_ERROR),
      ms: tenths(this.elapsed()),
      requests: this.requests,
    };
    return `${printable(JSON.stringify(record))}\n`;
  }
}

/** The installer renames the log before it is so long. */
const MAX_BYTES = 8 * 1024 * 1024;
const FLAGS = Open.writeOnly | Open.append | Open.create | Open.nonBlocking;

/**
 * Appends a line, if the installer's pod mounts the directory. This never fails, since a call's result must not depend
 * on its record.
 */
export function appendLine(host: Host, path: string, line: string): void {
  let descriptor: number | undefined;
  try {
    descriptor = openFile(host, path, FLAGS);
    if (sizeOf(host, descriptor) < MAX_BYTES) host.write(descriptor, host.encode(line));
  } catch {
    // Without the directory, space or permission there is no record.
  } finally {
    if (descriptor !== undefined) host.close(descriptor);
  }
}
