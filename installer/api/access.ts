import type { ApiServer } from "../../kubernetes/api-server";
import { Backoff, type BackoffPolicy } from "../../kubernetes/backoff";
import type { Transport } from "../../kubernetes/transport";
import type { Clock } from "../../process/clock";

/** Whether the API server accepts this pod's token; undecided while it does not answer. */
export type Verdict = { readonly kind: "accepted" | "unknown" } | { readonly kind: "refused"; readonly why: string };

export const UNAUTHORIZED = 401;
const FORBIDDEN = 403;
/** Whether an answer says that the token is accepted, and may ask. */
export const isAccepted = (status: number) => status < 500 && status !== UNAUTHORIZED && status !== FORBIDDEN;

const REMEMBERED_MS = 30_000;
/**
 * A check that is refused or not answered is repeated soon, since a node may not be chained until then, and later less
 * often: a thousand nodes that ask every five seconds keep a slow API server slow.
 */
const FAILED: BackoffPolicy = { firstMs: 5_000, longestMs: REMEMBERED_MS };
const DEADLINE_MS = 2_500;

interface AccessCheckDeps {
  readonly transport: (access: ApiServer) => Transport;
  /** A request of the plugin: a pod. */
  readonly path: string;
  readonly clock: Pick<Clock, "now" | "random">;
}

/** What a check found out about a token. */
interface Remembered {
  readonly token: string;
  readonly verdict: Promise<Verdict>;
  /** Of the verdict, once it is there. */
  kind?: Verdict["kind"];
  until: number;
}

/** Makes a request of the plugin, once in half a minute for an accepted token. */
export class AccessCheck {
  private known: Remembered | undefined;
  /** Whether the last answer accepted a token of this account. */
  private hasWorked = false;
  private readonly failed: Backoff;

  constructor(private readonly deps: AccessCheckDeps) {
    this.failed = new Backoff(FAILED, deps.clock.random);
  }

  check(access: ApiServer): Promise<Verdict> {
    const { now } = this.deps.clock;
    if (this.known?.token === access.token && now() < this.known.until) return this.known.verdict;
    const asked: Remembered = { token: access.token, verdict: this.ask(access), until: now() + REMEMBERED_MS };
    this.known = asked;
    void asked.verdict.then(({ kind }) => {
      asked.kind = kind;
      if (kind === "accepted") this.failed.reset();
      else asked.until = now() + this.failed.next();
    });
    return asked.verdict;
  }

  /** Takes what the API server has answered to the same question, asked with this token for another purpose. */
  learn(token: string, status: number): void {
    // It is asked for again soon: a token that was revoked is replaced.
    if (status === UNAUTHORIZED && this.known?.token === token && this.known.kind === "accepted")
      this.known = undefined;
    if (!isAccepted(status)) return;
    this.hasWorked = true;
    const until = this.deps.clock.now() + REMEMBERED_MS;
    this.known = { token, verdict: Promise.resolve({ kind: "accepted" }), kind: "accepted", until };
  }

  private async ask(access: ApiServer): Promise<Verdict> {
    try {
      const { status } = await this.deps.transport(access)({ path: this.deps.path, deadlineMs: DEADLINE_MS });
      if (status === UNAUTHORIZED) {
        return { kind: "refused", why: "the API server does not accept this pod's token (401)" };
      }
      if (status === FORBIDDEN) return this.forbidden();
      if (!isAccepted(status)) return { kind: "unknown" };
      this.hasWorked = true;
      return { kind: "accepted" };
    } catch {
      return { kind: "unknown" };
    }
  }

  /** An API server that has just started does not know the roles yet and refuses everything: ask it once more. */
  private forbidden(): Verdict {
    const { hasWorked } = this;
    this.hasWorked = false;
    return hasWorked ? { kind: "unknown" } : { kind: "refused", why: "this pod's account may not get pods (403)" };
  }
}
