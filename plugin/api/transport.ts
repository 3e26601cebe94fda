import {
  type ApiRequest,
  type ApiResponse,
  type ApiServer,
  ApiUnreachable,
  authority,
  type Transport,
} from "../../kubernetes/client";
import { encodeRequest, ResponseReader } from "./http1";
import type { Connect, Wire, WireEvents } from "./wire";

/** Milliseconds within which a connection must be made and encrypted; the rest of the deadline is for the answer. */
const CONNECT_MS = 3000;

/** No response; `dropped` where the connection was made and broke before the first byte of one. */
class NoResponse extends Error {
  constructor(
    reason: string,
    readonly dropped: boolean,
  ) {
    super(reason);
  }
}

/** One request on a connection of its own, with its two deadlines. */
class Exchange implements WireEvents {
  readonly response: Promise<ApiResponse>;
  private settle: { resolve(response: ApiResponse): void; reject(error: Error): void } | undefined;
  private readonly reader = new ResponseReader();
  private readonly begin = performance.now();
  private isReady = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly abandon: () => void;

  constructor(
    private readonly call: ApiRequest,
    private readonly way: Way,
  ) {
    this.response = new Promise((resolve, reject) => {
      this.settle = { resolve, reject };
    });
    const limit = Math.min(CONNECT_MS, call.deadlineMs);
    this.timer = setTimeout(() => this.expire(`no connection within ${limit} ms`), limit);
    this.abandon = way.connect(way.server, this);
  }

  begun(): void {
    this.way.whileWaiting();
  }

  ready(wire: Wire): void {
    this.isReady = true;
    clearTimeout(this.timer);
    const limit = this.call.deadlineMs;
    const left = Math.max(1, limit - (performance.now() - this.begin));
    this.timer = setTimeout(() => this.expire(`no answer within ${limit} ms`), left);
    wire.send(encodeRequest(this.way.server, this.call));
  }

  received(bytes: Uint8Array): void {
    this.settleBy(() => this.reader.receive(bytes));
  }

  ended(reason?: string): void {
    if (reason === undefined) this.settleBy(() => this.reader.end());
    const dropped = this.isReady && this.reader.isEmpty;
    this.finish()?.reject(new NoResponse(reason ?? "closed the connection without a whole answer", dropped));
  }

  private expire(reason: string): void {
    this.finish()?.reject(new NoResponse(reason, false));
  }

  private settleBy(read: () => ApiResponse | undefined): void {
    if (this.settle === undefined) return;
    try {
      const response = read();
      if (response !== undefined) this.finish()?.resolve(response);
    } catch (error) {
      this.finish()?.reject(new NoResponse((error as Error).message, false));
    }
  }

  /** Lets go of the connection; gives the promise's ends the first time only. */
  private finish() {
    const settle = this.settle;
    if (settle === undefined) return undefined;
    this.settle = undefined;
    clearTimeout(this.timer);
    this.abandon();
    return settle;
  }
}

/** How requests get to a server. */
export interface Way {
  readonly server: ApiServer;
  readonly connect: Connect;
  /** Run when a connection has been made and there is nothing to do until the server answers. */
  readonly whileWaiting: () => void;
}

/** A transport whose every request is a connection of its own; a dropped one is tried once more. */
export function leanTransport(way: Way): Transport {
  return async (call) => {
    const begin = performance.now();
    const attempt = () => {
      const deadlineMs = Math.max(1, Math.round(call.deadlineMs - (performance.now() - begin)));
      return new Exchange({ ...call, deadlineMs }, way).response;
    };
    const first = attempt().catch((error: unknown) => {
      if (error instanceof NoResponse && error.dropped && performance.now() - begin < call.deadlineMs) return attempt();
      throw error;
    });
    return await first.catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      throw new ApiUnreachable(authority(way.server), reason, { cause: error });
    });
  };
}
