import { ApiReach } from "../../cni/contract";
import { reasonOf } from "../../cni/errors";
import type { ApiResponse } from "../../kubernetes/api-server";
import { Backoff, type BackoffPolicy } from "../../kubernetes/backoff";
import { type ClosingTransport, type ConnectionOptions, httpsTransport } from "../../kubernetes/transport";
import type { Clock } from "../../process/clock";
import type { Log } from "../../process/log";
import type { Access } from "./access";

/**
 * Few connections, since each costs 45 KiB here and a handshake of the API server; more if it is slow. A dead
 * connection is noticed early enough to retry over another one. An answer is a pod, which etcd limits to 1.5 MiB.
 */
const CONNECTIONS: ConnectionOptions = {
  usual: 8,
  most: 64,
  idleMs: 30_000,
  connectMs: 2_000,
  acknowledgeMs: 1_500,
  answerBytes: 4 * 1024 * 1024,
};
/** Nearly the deadline of a look-up, since a slow API server is still reachable; an outage is noticed within 15 s. */
const CHECK_MS = 4_500;
/** The API server answers this from memory: a check does not cost a request to etcd. */
const AS_CACHED = "?resourceVersion=0";
/** Milliseconds after which the log repeats that the API server cannot be reached. */
const SAY_AGAIN_MS = 60_000;
/** Milliseconds between checks. */
const EVERY_MS = 10_000;
/** An unreachable server is tried sooner, but not for long: a thousand nodes would keep it slow. */
const UNREACHED: BackoffPolicy = { firstMs: 3_000, longestMs: EVERY_MS };

interface ApiConnectionDeps {
  /** Called before each request. @throws if there is no token */
  readonly access: () => Access;
  /** An object that the plugin may read: a check asks for it. */
  readonly path: string;
  readonly log: Log;
  readonly clock: Pick<Clock, "now" | "random">;
}

/** The installer's open connections to the API server, as the plugin's account, and their health. */
export class ApiConnection {
  private readonly transport: ClosingTransport;
  private checking: Promise<void> | undefined;
  private dueAt = Number.NEGATIVE_INFINITY;
  private readonly unreached: Backoff;
  private reason: string | undefined;
  private saidAt = Number.NEGATIVE_INFINITY;
  private accepted = false;

  constructor(private readonly deps: ApiConnectionDeps) {
    this.transport = httpsTransport(deps.access, CONNECTIONS);
    this.unreached = new Backoff(UNREACHED, deps.clock.random);
  }

  /** Why the API server cannot be reached; undefined if the last check reached it or no check has ended yet. */
  get problem(): string | undefined {
    return this.reason;
  }

  /** Whether a check's answer shows that look-ups work. */
  get hasWorked(): boolean {
    return this.accepted;
  }

  /**
   * Gets an object. While the API server cannot be reached, this does not try.
   * @throws Error without an answer
   */
  async get(path: string, deadlineMs: number): Promise<ApiResponse> {
    if (this.reason !== undefined) throw new Error(this.reason);
    try {
      return await this.transport({ path, deadlineMs });
    } catch (error) {
      void this.check();
      throw error;
    }
  }

  /** Checks again if due. Never rejects. @returns milliseconds until the next check is due */
  async checkIfDue(): Promise<number> {
    const { now } = this.deps.clock;
    if (now() >= this.dueAt) await this.check();
    return Math.max(0, this.dueAt - now());
  }

  close(): void {
    this.transport.close();
  }

  private check(): Promise<void> {
    this.checking ??= this.ask().finally(() => {
      this.checking = undefined;
      this.dueAt = this.deps.clock.now() + (this.reason === undefined ? EVERY_MS : this.unreached.next());
    });
    return this.checking;
  }

  private async ask(): Promise<void> {
    const { path, log } = this.deps;
    try {
      const { status } = await this.transport({ path: `${path}${AS_CACHED}`, deadlineMs: CHECK_MS });
      this.accepted ||= status < 500 && status !== 401 && status !== 403;
      if (this.reason !== undefined) log.warn(ApiReach.regained);
      this.reason = undefined;
      this.unreached.reset();
    } catch (error) {
      const reason = reasonOf(error);
      const now = this.deps.clock.now();
      if (this.reason === undefined || now >= this.saidAt + SAY_AGAIN_MS) {
        log.warn(`${ApiReach.lost}: ${reason}`);
        this.saidAt = now;
      }
      this.reason = reason;
    }
  }
}
