import type { Log } from "../../../cni/log";
import type { ApiRequest, ApiResponse, Transport } from "../../../kubernetes/client";
import type { Clock } from "../../clock";
import { claimed, type LeaseObject, mayHold, released, type Sighting, sight } from "./lease";

/** Whether this process may write. */
export interface Leadership {
  readonly leading: boolean;
}

interface Tools {
  readonly send: Transport;
  readonly clock: Clock;
  readonly log: Log;
  readonly namespace: string;
  /** Name of this process, never used by another one. */
  readonly identity: string;
  /** Told when this process begins to lead. */
  readonly elected: () => void;
}

export const LEASE = "linkerd-multus";

/** How long others wait for a leader that says nothing. */
const DURATION_MS = 15_000;
/** A leader that could not renew for so long has stopped writing by the time that another may begin. */
const RENEW_DEADLINE_MS = 10_000;
const RETRY_MS = 2_000;
const REQUEST_MS = 5_000;
const JITTER = 0.2;

const NOT_FOUND = 404;
const CONFLICT = 409;
const succeeded = ({ status }: ApiResponse) => status >= 200 && status < 300;

/** Holds a Lease, or waits for it. */
export class Elector implements Leadership {
  private lease: LeaseObject | undefined;
  private sighting: Sighting | undefined;
  /** When the last renewal was asked for that succeeded. */
  private renewedAt: number | undefined;
  private led = false;
  private problem = "";

  constructor(private readonly tools: Tools) {}

  /** Becomes false by itself when the lease could not be renewed in time. */
  get leading(): boolean {
    return this.renewedAt !== undefined && this.tools.clock.now() - this.renewedAt < RENEW_DEADLINE_MS;
  }

  /** Tries to lead until the signal is given; then gives the lease back. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.tools;
    while (!signal.aborted) {
      const asked = clock.now();
      const held = await this.attempt();
      // The lead may have ended meanwhile; what was left alone then has to be done if it begins anew.
      this.tell();
      if (held === true) this.renewedAt = asked;
      else if (held === false) this.renewedAt = undefined;
      this.tell();
      await clock.sleep(RETRY_MS * (1 + JITTER * clock.random()), signal);
    }
    if (this.leading) await this.release();
    this.renewedAt = undefined;
  }

  /** Whether the lease is held now; undefined where nothing was learned. */
  private async attempt(): Promise<boolean | undefined> {
    try {
      const held = await this.hold();
      this.problem = "";
      return held;
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.problem) this.tools.log.warn(message, { lease: LEASE });
      this.problem = message;
      return undefined;
    }
  }

  /** A leader renews without reading first; only where that fails somebody else has written. */
  private async hold(): Promise<boolean> {
    const { clock, identity } = this.tools;
    if (this.leading && this.lease !== undefined && (await this.write("PUT", this.lease))) return true;
    await this.read();
    if (this.lease === undefined) return this.write("POST", {});
    if (this.sighting === undefined || !mayHold(this.sighting, identity, clock.now())) return false;
    return this.write("PUT", this.lease);
  }

  private async read(): Promise<void> {
    const response = await this.send({ path: this.path });
    if (response.status === NOT_FOUND) this.lease = undefined;
    else this.take(response);
  }

  /** Creates or changes the lease; somebody else may have been faster. */
  private async write(method: "POST" | "PUT", { metadata, spec }: LeaseObject): Promise<boolean> {
    const { clock, identity, namespace } = this.tools;
    const response = await this.send({
      method,
      path: method === "POST" ? this.collection : this.path,
      body: {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: metadata ?? { name: LEASE, namespace },
        spec: claimed(spec, { identity, date: clock.date(), durationMs: DURATION_MS }),
      },
    });
    if (response.status === CONFLICT || response.status === NOT_FOUND) return false;
    this.take(response);
    return true;
  }

  private async release(): Promise<void> {
    const { clock, log } = this.tools;
    const { lease } = this;
    const body = { ...lease, spec: released(lease?.spec ?? {}, clock.date()) };
    try {
      this.take(await this.send({ method: "PUT", path: this.path, body }));
      log.info("gave the lease back", { lease: LEASE });
    } catch (error) {
      log.warn(`the lease could not be given back: ${(error as Error).message}`, { lease: LEASE });
    }
  }

  private take(response: ApiResponse): void {
    if (!succeeded(response)) throw new Error(`lease ${this.path}: ${response.status}: ${response.body.slice(0, 300)}`);
    const lease = JSON.parse(response.body) as LeaseObject;
    this.lease = lease;
    this.sighting = sight(this.sighting, lease.spec ?? {}, this.tools.clock.now());
  }

  private tell(): void {
    const { elected, identity, log } = this.tools;
    const { leading } = this;
    if (leading === this.led) return;
    this.led = leading;
    const leader = leading ? identity : (this.sighting?.spec.holderIdentity ?? "");
    if (leading) log.info("leads: definitions are written here", { lease: LEASE, leader });
    else log.warn("does not lead any more: nothing is written", { lease: LEASE, leader });
    if (leading) elected();
  }

  private send(call: Omit<ApiRequest, "deadlineMs">): Promise<ApiResponse> {
    return this.tools.send({ ...call, deadlineMs: REQUEST_MS });
  }

  private get collection(): string {
    return `/apis/coordination.k8s.io/v1/namespaces/${this.tools.namespace}/leases`;
  }

  private get path(): string {
    return `${this.collection}/${LEASE}`;
  }
}
