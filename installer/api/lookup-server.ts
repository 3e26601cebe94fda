import { existsSync, readdirSync, renameSync, statSync, unlinkSync } from "node:fs";
import { reducedObject } from "../../cni/api-objects";
import { reasonOf } from "../../cni/errors";
import type { Json } from "../../cni/json";
import { isLookup } from "../../cni/lookup";
import { ANSWER_HEADER, ANSWER_VERSION, DEADLINE_HEADER, PROCESSING_MS } from "../../kubernetes/sync/installer";
import type { Log } from "../../process/log";
import { randomUUID } from "../../system/crypto";
import {
  HttpError,
  HttpServer,
  responseBytes,
  type ServerRequest,
  type ServerResponse,
} from "../../system/http/server";
import { type Connection, connectUnix, listenUnix, type UnixListener } from "../../system/net";
import { basename, dirname, join } from "../../system/path";
import type { ApiConnection } from "./api-connection";

/** Limits of a connection: only root can connect, but a root program may be faulty. */
const LIMITS = { connections: 512, headBytes: 4096, idleMs: 2_000, sendMs: 2_000, processingMs: PROCESSING_MS };
/**
 * Concurrent look-ups; further callers ask the API server themselves. In a burst the installer encrypts on one core while
 * callers use all of them. But a caller without a token can only try again.
 */
const MOST_LOOKUPS = { withToken: 16, withoutToken: 64 };
/** The plugin's deadline. */
const LONGEST_MS = 5_000;
/** Milliseconds that look-ups have to end when the installer stops. */
const LAST_MS = 1_000;
/** Characters of an error answer of the API server that are passed on. */
const LONGEST_REASON = 4096;

/** Between the socket's name and a random one, until it is put in place. */
const FRESH = ".new-";

const OK = 200;
const BAD_GATEWAY = 502;

interface LookupServerDeps {
  /** Of the socket. */
  readonly path: string;
  readonly connection: Pick<ApiConnection, "get" | "hasWorked">;
  /** Whether the plugin has a token on the node. */
  readonly tokenOnNode: boolean;
  /** Whether every caller does. */
  readonly callersHaveToken: boolean;
  readonly log: Log;
}

const noAnswer = (reason: string): ServerResponse => ({ status: BAD_GATEWAY, body: reason });

/** Looks pods up for the node's plugin calls, over a Unix socket. */
export class LookupServer {
  private readonly server = new HttpServer({ ...LIMITS, answer: (request) => this.answer(request) });
  private listener: { readonly inode: number; readonly socket: UnixListener } | undefined;
  private hasTaken = false;
  private lookups = 0;
  private said = "";

  constructor(private readonly deps: LookupServerDeps) {}

  /** Why pods cannot be looked up here, or not yet; empty if they can. */
  get unserved(): string {
    if (this.said !== "" || this.hasTaken) return this.said;
    return "the plugin cannot look pods up: the API server has not answered yet";
  }

  /**
   * Listens once the connection has worked: until then a previous installer may still serve. If another installer takes
   * the socket later, leaves it alone while that installer lives. Never rejects.
   */
  async keep(): Promise<void> {
    const { path, connection, tokenOnNode, log } = this.deps;
    try {
      if (!connection.hasWorked) return;
      const directory = dirname(path);
      if (!existsSync(directory)) {
        if (tokenOnNode) return;
        throw new Error(`${directory} does not exist`);
      }
      if (!(this.isInPlace() || (this.hasTaken && (await isServed(path))))) {
        await this.listen();
        log.debug(`looking pods up at ${path}`);
      }
      this.said = "";
    } catch (error) {
      const effect = tokenOnNode ? "the plugin asks the API server itself" : "the plugin cannot look pods up";
      const problem = `${effect}: ${reasonOf(error)}`;
      if (problem !== this.said) log.warn(problem);
      this.said = problem;
    }
  }

  /** Refuses new look-ups and soon ends those in progress. */
  async close(): Promise<void> {
    const isOwn = this.isInPlace();
    this.listener?.socket.close();
    this.listener = undefined;
    if (isOwn) remove(this.deps.path);
    await this.server.close(LAST_MS);
  }

  private isInPlace(): boolean {
    return this.listener !== undefined && inodeOf(this.deps.path) === this.listener.inode;
  }

  /** Listens under a temporary name first, so that the socket always exists. */
  private async listen(): Promise<void> {
    const { path } = this.deps;
    await removeLeftovers(path);
    const fresh = `${path}${FRESH}${randomUUID().slice(0, 8)}`;
    const socket = await listenUnix(fresh, this.take);
    try {
      const inode = inodeOf(fresh) ?? 0;
      renameSync(fresh, path);
      this.listener?.socket.close();
      this.listener = { inode, socket };
      this.hasTaken = true;
    } catch (error) {
      socket.close();
      remove(fresh);
      throw error;
    }
  }

  /** Refuses a caller beyond the limit before its request is read: in a burst that costs the others less. */
  private readonly take = (connection: Connection): void => {
    if (this.lookups < this.most) {
      this.server.take(connection);
      return;
    }
    const end = () => connection.close();
    connection.write(responseBytes(this.busy)).then(end, end);
  };

  private get most(): number {
    return this.deps.callersHaveToken ? MOST_LOOKUPS.withToken : MOST_LOOKUPS.withoutToken;
  }

  private get busy(): ServerResponse {
    return noAnswer(`it is busy with ${this.most} look-ups`);
  }

  private async answer({ method, target, headers }: ServerRequest): Promise<ServerResponse> {
    if (method !== "GET") throw new HttpError(405, "only GET is answered", { allow: "GET" });
    if (!isLookup(target)) throw new HttpError(404, "only pods, namespaces and the Service kubernetes are looked up");
    if (this.lookups >= this.most) return this.busy;
    const deadline = headers.get(DEADLINE_HEADER) ?? "";
    const deadlineMs = Math.min(LONGEST_MS, /^[1-9]\d{0,5}$/.test(deadline) ? Number(deadline) : LONGEST_MS);
    this.lookups += 1;
    try {
      const { status, body, retryAfter } = await this.deps.connection.get(target, deadlineMs);
      const wait = retryAfter === undefined ? {} : { "retry-after": retryAfter };
      const headers = { [ANSWER_HEADER]: ANSWER_VERSION, ...wait };
      return { status, headers, body: status === OK ? reduced(body) : body.slice(0, LONGEST_REASON) };
    } catch (error) {
      return noAnswer(reasonOf(error));
    } finally {
      this.lookups -= 1;
    }
  }
}

/** Removes what installers left that ended before they had put their sockets in place. */
async function removeLeftovers(path: string): Promise<void> {
  const directory = dirname(path);
  const begin = `${basename(path)}${FRESH}`;
  for (const name of readdirSync(directory)) {
    const found = join(directory, name);
    if (name.startsWith(begin) && !(await isServed(found))) remove(found);
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It does not exist, or listening there reports why it cannot be replaced.
  }
}

const reduced = (body: string) => JSON.stringify(reducedObject(JSON.parse(body) as Json));

const inodeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.ino;

async function isServed(path: string): Promise<boolean> {
  try {
    (await connectUnix(path)).close();
    return true;
  } catch (error) {
    // Its installer is busy.
    return (error as { readonly code?: string }).code === "EAGAIN";
  }
}
