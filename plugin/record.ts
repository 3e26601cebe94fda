/** One call in numbers and reasons: a line of the log that the installer tails into its own log and metrics. */
export interface CallRecord {
  readonly time: string;
  readonly verb: string;
  readonly pod?: string;
  readonly decision?: "redirect" | "skip";
  /** Why a pod was left alone, or decided without the API server. */
  readonly reason?: string;
  /** How the rules were programmed. */
  readonly mode?: string;
  /** Milliseconds for learning about the pod, for the rules, and from the process's start to the result. */
  readonly lookupMs?: number;
  readonly rulesMs?: number;
  readonly ms: number;
  /** Requests sent to the API server. */
  readonly requests: number;
  /** The CNI error, where there was one. */
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
    return `${JSON.stringify(record)}\n`;
  }
}
