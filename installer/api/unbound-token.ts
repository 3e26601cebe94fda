import { reasonOf } from "../../cni/errors";
import type { ApiServer } from "../../kubernetes/api-server";
import { Backoff, type BackoffPolicy } from "../../kubernetes/backoff";
import type { Transport } from "../../kubernetes/transport";
import type { Clock } from "../../process/clock";
import type { Log } from "../../process/log";
import { fromBase64, textOf } from "../../system/bytes";

/** Claims of a service account token, which is not verified here. */
interface TokenClaims {
  /** `system:serviceaccount:NAMESPACE:NAME`. */
  readonly subject: string;
  /** Milliseconds. */
  readonly lifetime: number;
}

/** Reads the claims; undefined without a subject and an expiry. */
function readClaims(token: string): TokenClaims | undefined {
  try {
    const payload = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const { sub, iat, exp } = JSON.parse(textOf(fromBase64(payload))) as Record<string, unknown>;
    if (typeof sub !== "string" || typeof iat !== "number" || typeof exp !== "number") return undefined;
    return { subject: sub, lifetime: (exp - iat) * 1000 };
  } catch {
    return undefined;
  }
}

interface UnboundTokenDeps {
  /** The installer's own access, read from its files. @throws if the files are missing */
  readonly own: () => ApiServer;
  readonly transport: (access: ApiServer) => Transport;
  readonly log: Log;
  readonly clock: Pick<Clock, "now" | "random">;
}

/** A token, with times on the monotonic clock. */
interface Minted {
  readonly token: string;
  readonly renewAt: number;
  readonly expiresAt: number;
}

/** Share of a token's lifetime: nodes that got theirs at the same time renew at different times. */
const RENEW_AT = { earliest: 0.7, latest: 0.8 };
const DAY_SECONDS = 24 * 60 * 60;
const DEADLINE_MS = 4_000;
const FAILED: BackoffPolicy = { firstMs: 5_000, longestMs: 60_000 };
const ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;

/**
 * A token of the installer's service account that is not bound to its pod, in memory only. If the pod is deleted by
 * force, the API server refuses the pod's own token, but not this one; after an uninstall it refuses both.
 */
export class UnboundToken {
  private minted: Minted | undefined;
  private retryAt = Number.NEGATIVE_INFINITY;
  private readonly failed: Backoff;

  constructor(private readonly deps: UnboundTokenDeps) {
    this.failed = new Backoff(FAILED, deps.clock.random);
  }

  /** Access by this token; undefined without one. @throws if the installer's own files are missing */
  get access(): ApiServer | undefined {
    const { minted, deps } = this;
    if (minted === undefined || deps.clock.now() >= minted.expiresAt) return undefined;
    return { ...deps.own(), token: minted.token };
  }

  /** Requests a token if one is due. Never rejects. */
  async renew(): Promise<void> {
    const { now } = this.deps.clock;
    if (now() < this.retryAt || (this.minted !== undefined && now() < this.minted.renewAt)) return;
    try {
      this.minted = await this.request();
      this.failed.reset();
    } catch (error) {
      this.retryAt = now() + this.failed.next();
      this.deps.log.debug(`no second token of this service account: ${reasonOf(error)}`);
    }
  }

  private async request(): Promise<Minted> {
    const { own, transport, clock } = this.deps;
    const access = own();
    const [, namespace, name] = ACCOUNT.exec(readClaims(access.token)?.subject ?? "") ?? [];
    if (name === undefined) throw new Error("the pod's own token does not name its account");
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    const kind = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest" };
    const body = { ...kind, spec: { expirationSeconds: DAY_SECONDS } };
    const { status, body: text } = await transport(access)({ method: "POST", path, body, deadlineMs: DEADLINE_MS });
    if (status !== 200 && status !== 201) throw new Error(`the API server answers ${status}`);
    const { status: given } = JSON.parse(text) as { status?: { token?: string } };
    const claims = readClaims(given?.token ?? "");
    if (given?.token === undefined || claims === undefined) throw new Error("the answer has no token with an expiry");
    // Its lifetime begins when it is received: this machine's clock may differ from the API server's.
    const { lifetime } = claims;
    const now = clock.now();
    const renewAt = now + lifetime * (RENEW_AT.earliest + (RENEW_AT.latest - RENEW_AT.earliest) * clock.random());
    return { token: given.token, renewAt, expiresAt: now + lifetime };
  }
}
