import { readdirSync, renameSync, statSync, unlinkSync } from "node:fs";
import { reducedObject } from "../../cni/api-objects";
import { codeOf, reasonOf } from "../../cni/errors";
import type { Json } from "../../cni/json";
import { isLookup } from "../../cni/lookup";
import { ANSWER_HEADER, ANSWER_VERSION, DEADLINE_HEADER, PROCESSING_MS } from "../../kubernetes/lookup-client";
import type { Log } from "../../process/log";
import { randomUUID } from "../../system/crypto";
import { HttpError, HttpServer, type ServerRequest, type ServerResponse } from "../../system/http/server";
import { connectUnix, listenUnix, type UnixListener } from "../../system/net";
import { basename, dirname, join } from "../../system/path";
import type { ApiConnection } from "./api-connection";

/** Limits of a connection: only root can connect, but a root program may be faulty. */
const LIMITS = { connections: 512, headBytes: 4096, idleMs: 2_000, sendMs: 2_000, processingMs: PROCESSING_MS };
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
  /** Whether this installer has the node. */
  readonly isOwner: () => boolean;
  readonly log: Log;
}

/** Looks pods up for the node's plugin calls, over a Unix socket. */
export class LookupServer {
  private readonly server = new HttpServer({ ...LIMITS, answer: (request) => this.answer(request) });
  private listener: { readonly inode: number; readonly socket: UnixListener } | undefined;
  private said = "";

  constructor(private readonly deps: LookupServerDeps) {}

  /** Why pods cannot be looked up, or not yet; empty if they can, or another installer has the node. */
  get unserved(): string {
    if (this.said !== "" || this.listener !== undefined || !this.deps.isOwner()) return this.said;
    return "the plugin cannot look pods up: the API server has not answered yet";
  }

  /**
   * Listens if this installer has the node, once the connection has worked: until then a previous installer serves.
   * Never rejects.
   */
  async keep(): Promise<void> {
    const { path, connection, isOwner, log } = this.deps;
    try {
      if (!connection.hasWorked || !isOwner()) return;
      if (!this.isInPlace()) {
        await this.listen();
        log.debug(`looking pods up at ${path}`);
      }
      this.said = "";
    } catch (error) {
      const problem = `the plugin cannot look pods up: ${reasonOf(error)}`;
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
    const socket = await listenUnix(fresh, (connection) => this.server.take(connection));
    try {
      const inode = inodeOf(fresh) ?? 0;
      renameSync(fresh, path);
      this.listener?.socket.close();
      this.listener = { inode, socket };
    } catch (error) {
      socket.close();
      remove(fresh);
      throw error;
    }
  }

  private async answer({ method, target, headers }: ServerRequest): Promise<ServerResponse> {
    if (method !== "GET") throw new HttpError(405, "only GET is answered", { allow: "GET" });
    if (!isLookup(target)) throw new HttpError(404, "only pods, namespaces and the Service kubernetes are looked up");
    const deadline = headers.get(DEADLINE_HEADER) ?? "";
    const deadlineMs = Math.min(LONGEST_MS, /^[1-9]\d{0,5}$/.test(deadline) ? Number(deadline) : LONGEST_MS);
    try {
      const { status, body, retryAfter } = await this.deps.connection.get(target, deadlineMs);
      const wait = retryAfter === undefined ? {} : { "retry-after": retryAfter };
      const headers = { [ANSWER_HEADER]: ANSWER_VERSION, ...wait };
      return { status, headers, body: status === OK ? reduced(body) : body.slice(0, LONGEST_REASON) };
    } catch (error) {
      return { status: BAD_GATEWAY, body: reasonOf(error) };
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

/** Whether something listens at a socket. */
export async function isServed(path: string): Promise<boolean> {
  try {
    (await connectUnix(path)).close();
    return true;
  } catch (error) {
    // Its installer is busy.
    return codeOf(error) === "EAGAIN";
  }
}
