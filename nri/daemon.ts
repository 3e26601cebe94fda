/** The NRI plugin of one node: keeps a connection to the container runtime, and looks at each pod that it names. */
import { AdminPath, CALL_LOG, NRI_PLUGIN, NRI_VERB } from "../cni/contract";
import { CniError, ErrorCode, reasonOf } from "../cni/errors";
import type { ApiAccess } from "../cni/lookup";
import { appendLine, Recorder } from "../host/call-log";
import { Errno, SystemError } from "../host/errno";
import { readText } from "../host/files";
import { readable, receiveSome, sendAll } from "../host/poll";
import type { Host } from "../host/port";
import { connectUnix } from "../host/sockets";
import { get } from "../kubernetes/sync/request";
import type { Log } from "../process/log";
import { AdminServer, type Answer } from "./admin-server";
import type { Sandbox } from "./messages";
import { createMetrics, type Occasion, type PodOutcome } from "./metrics";
import { Redirector } from "./redirector";
import { type Handler, RegistrationRefused, Session } from "./session";
import type { Settings } from "./settings";

/** A runtime that starts, or starts again, gets this plugin within so many milliseconds. */
const RECONNECT_MS = 100;
/** One that refuses the plugin, or is not understood, is asked again after twice as long each time, up to this. */
const LONGEST_BACKOFF_MS = 30_000;
/** A connection that lasted so many milliseconds has worked. */
const LASTED_MS = 10_000;
/** Milliseconds until a pod that runs, and could not be looked up, is looked up again. */
const RETRY_MS = 30_000;
/** Milliseconds that the runtime has to take an answer. */
const SEND_MS = 2000;
/** What the runtime allows by default, in milliseconds. */
const REQUEST_TIMEOUT_MS = 2000;
/** The part of it that the lookups for one pod may take: another pod's may have to end before them. */
const FOR_LOOKUPS = 1 / 3;
/** Milliseconds between collections of what only refers to itself. */
const COLLECT_MS = 60_000;
const RECEIVE_SIZE = 262_144;
/** Milliseconds between looks at what is due where nothing is. */
const IDLE_MS = 1000;
const SOCKET = "nri.sock";
/** What it means when a runtime is not there, or does not listen yet. */
const ABSENT: Readonly<Record<number, (directory: string) => string>> = {
  [Errno.ENOENT]: (directory) =>
    `there is no socket ${directory}/${SOCKET}: containerd 2.0 and later and CRI-O 1.30 and later make it unless NRI ` +
    "is turned off in their configuration; set nri.socketDir where it is in another directory",
  [Errno.ECONNREFUSED]: (directory) =>
    `nobody listens at ${directory}/${SOCKET}: the container runtime does not run, or is starting`,
  [Errno.EAGAIN]: (directory) => `too many plugins wait at ${directory}/${SOCKET}: the container runtime is busy`,
};

interface Connection {
  readonly socket: number;
  readonly session: Session;
  readonly since: number;
}

interface Deps {
  readonly host: Host;
  readonly settings: Settings;
  readonly log: Log;
}

export class Daemon {
  private connection: Connection | undefined;
  /** The runtime, once it has taken the plugin. */
  private runtime: string | undefined;
  /** Pods that ran before and were not looked at yet; undefined before the runtime has named them. */
  private waiting: Sandbox[] | undefined;
  /** Pods that run, and could not be looked up. */
  private later: Sandbox[] = [];
  private nextRetry = 0;
  /** Why the plugin is not connected; empty where it is. */
  private problem = "";
  /** Problems that were logged since a connection lasted. */
  private readonly said = new Set<string>();
  private backoff = RECONNECT_MS;
  private nextAttempt = 0;
  private nextCollection = COLLECT_MS;
  private lookupMs = REQUEST_TIMEOUT_MS * FOR_LOOKUPS;
  /** When the lookups for the pod at hand must have ended. */
  private lookupEnd = 0;
  private readonly buffer = new Uint8Array(RECEIVE_SIZE);
  private readonly redirector: Redirector;
  private readonly admin: AdminServer;
  private readonly metrics = createMetrics({
    connected: () => this.waiting !== undefined,
    synchronized: () => this.isSynchronized,
  });

  /** @throws SystemError where the port is taken */
  constructor(private readonly deps: Deps) {
    const { host, settings, log } = deps;
    const { stanza, netnsDir } = settings;
    this.redirector = new Redirector({ host, stanza, netnsDir, api: this.apiAccess() });
    this.admin = new AdminServer(host, settings.port, {
      [AdminPath.live]: () => ({ status: 200, body: "ok\n" }),
      [AdminPath.ready]: () => this.readiness(),
      [AdminPath.metrics]: () => ({ status: 200, body: this.metrics.registry.text() }),
    });
    if (stanza.problem !== undefined) log.error(`meshed pods without rules cannot start: ${stanza.problem.message}`);
  }

  /** Runs until the process ends. */
  run(): never {
    for (;;) this.step();
  }

  private get isSynchronized(): boolean {
    return this.waiting?.length === 0;
  }

  private readiness(): Answer {
    if (this.isSynchronized) return { status: 200, body: "ok\n" };
    const left = this.waiting?.length ?? 0;
    const running = left === 0 ? "the runtime has not named its pods yet" : `${left} pods are not looked at yet`;
    return { status: 503, body: `${this.problem === "" ? running : this.problem}\n` };
  }

  /**
   * Waits for input, or for what is due, and handles it. The runtime's input comes first: a pod's start waits for it.
   * That of the port, to which anybody may send without end, does not keep what is due from its turn.
   */
  private step(): void {
    const { host } = this.deps;
    if (this.connection === undefined && host.elapsed() >= this.nextAttempt) this.connect();
    const { connection } = this;
    const descriptors = [...(connection === undefined ? [] : [connection.socket]), ...this.admin.descriptors()];
    const ready = readable(host, descriptors, this.idleMs());
    for (const descriptor of ready) {
      if (descriptor === connection?.socket) this.receive(connection);
      else this.admin.serve(descriptor);
    }
    if (connection === undefined || !ready.includes(connection.socket)) this.lookAtNext();
    this.admin.expire();
    if (host.elapsed() >= this.nextCollection) {
      this.nextCollection = host.elapsed() + COLLECT_MS;
      host.collect();
    }
  }

  /** How long there is nothing to do but to wait for input. */
  private idleMs(): number {
    if (this.waiting !== undefined && this.waiting.length > 0) return 0;
    const { host } = this.deps;
    return this.connection === undefined ? Math.min(IDLE_MS, Math.max(0, this.nextAttempt - host.elapsed())) : IDLE_MS;
  }

  private connect(): void {
    const { host, settings } = this.deps;
    const path = `${settings.socketDir}/${SOCKET}`;
    try {
      const socket = connectUnix(host, path);
      const session = new Session({
        name: NRI_PLUGIN,
        index: settings.index,
        handler: this.handler,
        texts: host,
        send: (bytes) => {
          if (!sendAll(host, socket, bytes, SEND_MS)) throw new Error("the runtime does not take what it is sent");
        },
      });
      this.connection = { socket, session, since: host.elapsed() };
      this.metrics.connections.inc();
      session.register();
    } catch (error) {
      const absent = error instanceof SystemError ? ABSENT[error.errno] : undefined;
      if (absent === undefined) this.disconnect(reasonOf(error), "refused");
      else this.disconnect(absent(settings.socketDir), "absent");
    }
  }

  private receive({ socket, session }: Connection): void {
    const input = receiveSome(this.deps.host, socket, this.buffer);
    if (input === "nothing") return;
    if (input === "closed") {
      this.disconnect("the container runtime closed the connection", "refused");
      return;
    }
    try {
      session.receive(input);
    } catch (error) {
      const prefix = error instanceof RegistrationRefused ? "the container runtime refuses the plugin: " : "";
      this.disconnect(`${prefix}${reasonOf(error)}`, "refused");
    }
  }

  /** Ends the connection, if there is one; the next attempt is soon, or later each time the runtime refuses. */
  private disconnect(problem: string, kind: "absent" | "refused"): void {
    const { host, log } = this.deps;
    if (this.connection !== undefined) {
      host.close(this.connection.socket);
      if (this.waiting !== undefined && host.elapsed() - this.connection.since >= LASTED_MS) {
        this.backoff = RECONNECT_MS;
        this.said.clear();
      }
    }
    this.connection = undefined;
    this.runtime = undefined;
    this.waiting = undefined;
    this.nextAttempt = host.elapsed() + (kind === "absent" ? RECONNECT_MS : this.backoff);
    if (kind === "refused") this.backoff = Math.min(LONGEST_BACKOFF_MS, 2 * this.backoff);
    if (!this.said.has(problem)) log.warn(problem);
    this.said.add(problem);
    this.problem = problem;
  }

  private readonly handler: Handler = {
    configured: ({ runtime, requestTimeout }) => {
      this.runtime = runtime;
      this.lookupMs = (requestTimeout || REQUEST_TIMEOUT_MS) * FOR_LOOKUPS;
    },
    synchronize: (sandboxes) => {
      const { log } = this.deps;
      const connected = `connected to ${this.runtime}; pods that run already: ${sandboxes.length}`;
      // One that does not last comes again and again.
      if (!this.said.has(connected)) log.info(connected);
      this.said.add(connected);
      this.problem = "";
      this.waiting = [...sandboxes];
      this.later = [];
      this.redirector.retain(new Set(sandboxes.map(({ id }) => id)));
    },
    run: (sandbox) => this.look("run", sandbox),
    create: (sandbox) => this.look("create", sandbox),
    removed: ({ id }) => {
      this.redirector.forget(id);
      this.later = this.later.filter((each) => each.id !== id);
    },
  };

  /** Looks at one of the pods that ran before. One that throws runs all the same, and was reported. */
  private lookAtNext(): void {
    const sandbox = this.waiting?.shift() ?? this.nextAgain();
    if (sandbox === undefined) return;
    try {
      this.look("synchronize", sandbox);
    } catch (error) {
      if (!(error instanceof CniError && error.code === ErrorCode.tryAgainLater)) return;
      this.later.push(sandbox);
      this.nextRetry = this.deps.host.elapsed() + RETRY_MS;
    }
  }

  private nextAgain(): Sandbox | undefined {
    return this.deps.host.elapsed() < this.nextRetry ? undefined : this.later.shift();
  }

  /** Looks at a pod, and reports what was found. @throws what keeps it from running as it should */
  private look(event: Occasion, sandbox: Sandbox): void {
    const { host, log } = this.deps;
    const begin = host.elapsed();
    this.lookupEnd = begin + this.lookupMs;
    const name = `${sandbox.namespace}/${sandbox.name}`;
    const record = new Recorder(NRI_VERB, () => host.elapsed() - begin);
    record.note({ pod: name });
    let outcome: PodOutcome = event === "synchronize" ? "failed" : "refused";
    try {
      const found = this.redirector.redirect(sandbox, { mayBeGone: event === "synchronize" });
      outcome = found.kind;
      const unanswered = found.kind === "redirected" ? found.unanswered : undefined;
      if (unanswered !== undefined) log.warn(`pod ${name}: deciding by the annotations alone: ${unanswered}`);
      if (found.kind === "edited") {
        log.warn(`pod ${name} has other rules than were set; they are left as they are: ${found.reason}`);
        record.note({ code: ErrorCode.rulesDiffer, error: found.reason });
      } else if (found.kind === "foreign") {
        log.warn(`pod ${name} has rules of another program; they are left as they are: ${found.reason}`);
      } else if (found.kind === "redirected" && event !== "run") {
        log.info(`pod ${name} ran without rules: set them in place`);
        record.note({ decision: "redirect", mode: "native", reason: "the pod ran without rules" });
        this.metrics.mended.inc();
      } else {
        log.debug(`pod ${name}: ${found.kind}${found.kind === "skipped" ? `, ${found.reason}` : ""}`);
        return;
      }
      if (found.kind !== "foreign") appendLine(host, CALL_LOG, record.line());
    } catch (error) {
      const { code, message } =
        error instanceof CniError ? error : { code: ErrorCode.rulesRefused, message: reasonOf(error) };
      log.warn(message, { pod: name });
      record.note({ code, error: message });
      appendLine(host, CALL_LOG, record.line());
      throw error;
    } finally {
      this.metrics.pods.inc({ event, outcome });
      this.metrics.seconds.observe((host.elapsed() - begin) / 1000, { event });
    }
  }

  /** Requests to the API server, where the pod has a token for it. */
  private apiAccess(): ApiAccess | undefined {
    const { host, settings } = this.deps;
    const { host: name, port, serviceAccountDir } = settings.apiServer;
    const token = `${serviceAccountDir}/token`;
    if (name === "" || host.access(token) !== 0) return undefined;
    const answer: ApiAccess["get"] = (path) => {
      this.metrics.lookups.inc();
      // Both are renewed while the process runs.
      const server = {
        host: name,
        port,
        token: readText(host, token).trim(),
        ca: readText(host, `${serviceAccountDir}/ca.crt`),
      };
      return get(host, server, path, Math.max(1, this.lookupEnd - host.elapsed()));
    };
    return { get: answer, credentials: token, renewedBy: "the kubelet" };
  }
}
