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

/** No response; `dropped` where the connection was made and came to its end before the first byte of one. */
class NoResponse extends Error {
  constructor(
    reason: string,
    readonly dropped: boolean,
  ) {
    super(reason);
  }
}

/** The ends of the promise of a response. */
interface Ends {
  resolve(response: ApiResponse): void;
  reject(error: Error): void;
}

/** One request on a connection of its own, with its two deadlines. */
class Exchange implements WireEvents {
  readonly response: Promise<ApiResponse>;
  private ends: Ends | undefined;
  private readonly reader = new ResponseReader();
  private readonly begin = performance.now();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private abandon: () => void = () => undefined;

  constructor(
    private readonly call: ApiRequest,
    private readonly way: Way,
  ) {
    this.response = new Promise((resolve, reject) => {
      this.ends = { resolve, reject };
    });
    const limit = Math.min(CONNECT_MS, call.deadlineMs);
    this.timer = setTimeout(() => this.fail(`no connection within ${limit} ms`), limit);
    this.connect();
  }

  private connect(): void {
    try {
      this.abandon = this.way.connect(this.way.server, this);
    } catch (error) {
      this.fail((error as Error).message);
    }
    // Where the node has no route, all is over before there was anything to give up.
    if (this.ends === undefined) this.abandon();
  }

  begun(): void {
    this.way.whileWaiting();
  }

  ready(wire: Wire): void {
    clearTimeout(this.timer);
    const limit = this.call.deadlineMs;
    const left = Math.max(1, limit - (performance.now() - this.begin));
    this.timer = setTimeout(() => this.fail(`no answer within ${limit} ms`), left);
    wire.send(encodeRequest(this.way.server, this.call));
  }

  received(bytes: Uint8Array): void {
    this.settleBy(() => this.reader.receive(bytes));
  }

  refused(reason: string): void {
    this.fail(reason);
  }

  ended(reason?: string): void {
    if (reason === undefined) this.settleBy(() => this.reader.end());
    this.fail(reason ?? "closed the connection without a whole answer", this.reader.isEmpty);
  }

  private fail(reason: string, dropped = false): void {
    this.finish(({ reject }) => reject(new NoResponse(reason, dropped)));
  }

  private settleBy(read: () => ApiResponse | undefined): void {
    if (this.ends === undefined) return;
    try {
      const response = read();
      if (response !== undefined) this.finish(({ resolve }) => resolve(response));
    } catch (error) {
      this.fail((error as Error).message);
    }
  }

  /** Settles the promise, the first time only, and lets go of the connection. */
  private finish(settle: (ends: Ends) => void): void {
    const { ends } = this;
    if (ends === undefined) return;
    this.ends = undefined;
    clearTimeout(this.timer);
    settle(ends);
    this.abandon();
  }
}

/** How requests get to a server. */
export interface Way {
  readonly server: ApiServer;
  readonly connect: Connect;
  /** Run once, when a connection has been made and there is nothing to do until the server answers. */
  readonly whileWaiting: () => void;
}

/** A transport whose every request is a connection of its own; a dropped one is tried once more. */
export function leanTransport({ server, connect, whileWaiting }: Way): Transport {
  let hasWaited = false;
  const way: Way = {
    server,
    connect,
    whileWaiting() {
      if (!hasWaited) whileWaiting();
      hasWaited = true;
    },
  };
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
      throw new ApiUnreachable(authority(server), reason, { cause: error });
    });
  };
}
