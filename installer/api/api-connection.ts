import { ApiReach } from "../../cni/contract";
import { reasonOf } from "../../cni/errors";
import type { ApiResponse, ApiServer } from "../../kubernetes/api-server";
import { Backoff, type BackoffPolicy } from "../../kubernetes/backoff";
import { ApiConnections, type ConnectionOptions, type Transport } from "../../kubernetes/transport";
import type { Clock } from "../../process/clock";
import type { Log } from "../../process/log";

/** Whether the API server accepts this pod's token; undecided while it does not answer. */
export type Verdict = { readonly kind: "accepted" | "unknown" } | { readonly kind: "refused"; readonly why: string };

const UNAUTHORIZED = 401;
const FORBIDDEN = 403;
const UNKNOWN: Verdict = { kind: "unknown" };

/**
 * The look-ups at a time; more wait for one of these connections, each of which costs 45 KiB here and a handshake of the
 * API server. A dead one is noticed early enough to retry over another one. An answer is a pod, which etcd limits to
 * 1.5 MiB.
 */
const CONNECTIONS: ConnectionOptions = {
  connections: 64,
  idleMs: 30_000,
  connectMs: 2_000,
  acknowledgeMs: 1_500,
  probeMs: 5_000,
  answerBytes: 4 * 1024 * 1024,
};
/** Nearly the deadline of a look-up, since a slow API server is still reachable; an outage is noticed within 15 s. */
const CHECK_MS = 4_500;
/** The API server answers this from memory: a check does not cost a request to etcd. */
const AS_CACHED = "?resourceVersion=0";
/** Milliseconds after which the log repeats that the API server cannot be reached. */
const SAY_AGAIN_MS = 60_000;
/**
 * Milliseconds between checks: less than a connection is kept. Between them, the kernel probes the way to the API server,
 * and a connection that ends has a check follow at once.
 */
const EVERY_MS = 25_000;
/** Milliseconds between a check and one that follows a connection's end: a server may keep none for long. */
const SOONEST_MS = { broken: 3_000, ended: 10_000 };
/**
 * A server that cannot be reached, or refuses the token, is tried sooner, since a node may not be chained until then; but
 * not for long: a thousand nodes would keep it slow.
 */
const FAILED: BackoffPolicy = { firstMs: 3_000, longestMs: 10_000 };
/** Milliseconds for which the token that was read is used: the kubelet replaces it long before it ends. */
const READ_AGAIN_MS = 1_000;

interface ApiConnectionDeps {
  /** Called before each request. @throws if there is no token */
  readonly access: () => ApiServer;
  /** An object that the plugin may read: a check asks for it. */
  readonly path: string;
  readonly log: Log;
  readonly clock: Pick<Clock, "now" | "random">;
}

/** The installer's open connections to the API server, for look-ups, and their health. */
export class ApiConnection {
  private readonly connections: ApiConnections;
  private checking: Promise<void> | undefined;
  private dueAt = Number.NEGATIVE_INFINITY;
  private checkedAt = Number.NEGATIVE_INFINITY;
  private readonly failed: Backoff;
  private reason: string | undefined;
  private saidAt = Number.NEGATIVE_INFINITY;
  private hasEverWorked = false;
  /** Whether the last answer that was not 401 accepted a token of this account. */
  private works = false;
  /** What the last check found out, and the token that it was sent with. */
  private last: { readonly token: string; readonly verdict: Verdict } | undefined;
  private isClosed = false;
  private known: { readonly access: ApiServer; readonly until: number } | undefined;

  constructor(private readonly deps: ApiConnectionDeps) {
    this.connections = new ApiConnections({ ...CONNECTIONS, ended: (error) => this.lost(error !== undefined) });
    this.failed = new Backoff(FAILED, deps.clock.random);
  }

  /** Why the API server cannot be reached; undefined if the last check reached it or no check has ended yet. */
  get problem(): string | undefined {
    return this.reason;
  }

  /** Whether a check's answer shows that look-ups work. */
  get hasWorked(): boolean {
    return this.hasEverWorked;
  }

  /** Whether the API server accepts this pod's token, as of the last check. @throws if there is no token */
  async verdict(): Promise<Verdict> {
    if (this.last?.token !== this.access().token) await this.check();
    return this.last?.verdict ?? UNKNOWN;
  }

  /**
   * Gets an object. While the API server cannot be reached, this does not try.
   * @throws Error without an answer
   */
  async get(path: string, deadlineMs: number): Promise<ApiResponse> {
    if (this.reason !== undefined) throw new Error(this.reason);
    try {
      const access = this.access();
      const response = await this.connections.send(access, { path, deadlineMs });
      if (response.status === UNAUTHORIZED) {
        if (this.known?.access === access) this.known = undefined;
        if (this.last?.verdict.kind === "accepted") void this.check();
      }
      return response;
    } catch (error) {
      void this.check();
      throw error;
    }
  }

  /** A transport over the same connections for the installer's own requests. */
  as(access: ApiServer): Transport {
    return (request) => this.connections.send(access, request);
  }

  /** Checks again if due. Never rejects. @returns milliseconds until the next check is due */
  async checkIfDue(): Promise<number> {
    const { now } = this.deps.clock;
    if (now() >= this.dueAt) await this.check();
    return Math.max(0, this.dueAt - now());
  }

  close(): void {
    this.isClosed = true;
    this.connections.close();
  }

  /** The access that was read last, or read again: to read it for each look-up takes longer than to encrypt it. */
  private access(): ApiServer {
    const now = this.deps.clock.now();
    if (this.known === undefined || now >= this.known.until) {
      this.known = { access: this.deps.access(), until: now + READ_AGAIN_MS };
    }
    return this.known.access;
  }

  /** Without a connection there is no probe: a check makes the next. */
  private lost(isBroken: boolean): void {
    if (this.isClosed || this.reason !== undefined) return;
    const due = this.checkedAt + (isBroken ? SOONEST_MS.broken : SOONEST_MS.ended);
    if (this.deps.clock.now() >= due) void this.check();
    else this.dueAt = Math.min(this.dueAt, due);
  }

  private check(): Promise<void> {
    this.checking ??= this.ask().finally(() => {
      this.checking = undefined;
      this.checkedAt = this.deps.clock.now();
      const isAccepted = this.reason === undefined && this.last?.verdict.kind === "accepted";
      if (isAccepted) this.failed.reset();
      this.dueAt = this.checkedAt + (isAccepted ? EVERY_MS : this.failed.next());
    });
    return this.checking;
  }

  private async ask(): Promise<void> {
    const { path, log } = this.deps;
    let token = "";
    try {
      this.known = undefined;
      const access = this.access();
      token = access.token;
      const { status } = await this.connections.send(access, { path: `${path}${AS_CACHED}`, deadlineMs: CHECK_MS });
      this.last = { token, verdict: this.verdictOf(status) };
      if (this.reason !== undefined) log.warn(ApiReach.regained);
      this.reason = undefined;
    } catch (error) {
      this.last = { token, verdict: UNKNOWN };
      const reason = reasonOf(error);
      const now = this.deps.clock.now();
      if (this.reason === undefined || now >= this.saidAt + SAY_AGAIN_MS) {
        log.warn(`${ApiReach.lost}: ${reason}`);
        this.saidAt = now;
      }
      this.reason = reason;
    }
  }

  private verdictOf(status: number): Verdict {
    if (status === UNAUTHORIZED)
      return { kind: "refused", why: "the API server does not accept this pod's token (401)" };
    if (status >= 500) return UNKNOWN;
    const { works } = this;
    this.works = status !== FORBIDDEN;
    this.hasEverWorked ||= this.works;
    if (this.works) return { kind: "accepted" };
    // An API server that has just started does not know the roles yet and refuses everything: ask it once more.
    return works ? UNKNOWN : { kind: "refused", why: "this pod's account may not get pods (403)" };
  }
}
