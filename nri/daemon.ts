/** The NRI plugin of one node: keeps a connection to the container runtime, and looks at each pod that it names. */
import { AdminPath, CALL_LOG, NRI_PLUGIN } from "../cni/contract";
import { CniError, ErrorCode, reasonOf } from "../cni/errors";
import type { Get } from "../cni/lookup";
import { get } from "../host/api/request";
import { appendLine, Recorder } from "../host/call-log";
import { Errno, SystemError } from "../host/errno";
import { readText } from "../host/files";
import { readable, receiveSome, sendAll } from "../host/poll";
import type { Host } from "../host/port";
import { connectUnix } from "../host/sockets";
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
/** Milliseconds within which the runtime must have taken the plugin. */
const REGISTRATION_MS = 10_000;
/** Milliseconds that the runtime has to take an answer. */
const SEND_MS = 2000;
/** What the runtime allows by default, in milliseconds. */
const REQUEST_TIMEOUT_MS = 2000;
/** The part of it that the lookups for one pod may take: another pod's may have to end before them. */
const FOR_LOOKUPS = 1 / 3;
/** Milliseconds between collections of what only refers to itself. */
const COLLECT_MS = 60_000;
const RECEIVE_SIZE = 65_536;
/** Milliseconds between looks at what is due where nothing is. */
const IDLE_MS = 1000;
const SOCKET = "nri.sock";
/** What a runtime that is not there, or does not listen yet, answers. */
const ABSENT: readonly number[] = [Errno.ENOENT, Errno.ECONNREFUSED];
/** What the log of calls has in place of a verb. */
const VERB = "NRI";

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
  /** Why the plugin is not connected, as it was last logged. */
  private problem = "";
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
    connected: () => this.runtime !== undefined,
    synchronized: () => this.isSynchronized,
  });

  /** @throws SystemError where the port is taken */
  constructor(private readonly deps: Deps) {
    const { host, settings, log } = deps;
    const { stanza, netnsDir } = settings;
    this.redirector = new Redirector({ host, stanza, netnsDir, get: this.requests() });
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
    return this.runtime !== undefined && this.waiting?.length === 0;
  }

  private readiness(): Answer {
    if (this.isSynchronized) return { status: 200, body: "ok\n" };
    const left = this.waiting?.length ?? 0;
    const running = left === 0 ? "the runtime has not named its pods yet" : `${left} pods are not looked at yet`;
    return { status: 503, body: `${this.problem === "" ? running : this.problem}\n` };
  }

  /** Waits for input, or for what is due, and handles it. Input comes first: a pod's start waits for it. */
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
    if (ready.length === 0) this.lookAtNext();
    this.admin.expire();
    if (this.connection !== undefined && this.waiting === undefined) this.expireRegistration(this.connection);
    if (host.elapsed() >= this.nextCollection) {
      this.nextCollection = host.elapsed() + COLLECT_MS;
      host.collect();
    }
  }

  /** How long there is nothing to do but to wait for input. */
  private idleMs(): number {
    if (this.waiting !== undefined && this.waiting.length > 0) return 0;
    const { host } = this.deps;
    return this.connection === undefined ? Math.max(0, this.nextAttempt - host.elapsed()) : IDLE_MS;
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
      const isAbsent = error instanceof SystemError && ABSENT.includes(error.errno);
      this.disconnect(isAbsent ? noSocket(settings.socketDir) : reasonOf(error), isAbsent ? "absent" : "refused");
    }
  }

  private receive({ socket, session }: Connection): void {
    const input = receiveSome(this.deps.host, socket, this.buffer);
    if (input === "nothing") return;
    if (input === "closed") {
      const wasTaken = this.waiting !== undefined;
      this.disconnect("the container runtime closed the connection", wasTaken ? "absent" : "refused");
      return;
    }
    try {
      session.receive(input);
    } catch (error) {
      const prefix = error instanceof RegistrationRefused ? "the container runtime refuses the plugin: " : "";
      this.disconnect(`${prefix}${reasonOf(error)}`, "refused");
    }
  }

  private expireRegistration({ since }: Connection): void {
    if (this.deps.host.elapsed() - since < REGISTRATION_MS) return;
    this.disconnect(`the container runtime did not name its pods within ${REGISTRATION_MS} ms`, "refused");
  }

  /** Ends the connection, if there is one; the next attempt is soon, or later each time the runtime refuses. */
  private disconnect(problem: string, kind: "absent" | "refused"): void {
    const { host, log } = this.deps;
    if (this.connection !== undefined) host.close(this.connection.socket);
    this.connection = undefined;
    this.runtime = undefined;
    this.waiting = undefined;
    this.nextAttempt = host.elapsed() + (kind === "absent" ? RECONNECT_MS : this.backoff);
    if (kind === "refused") this.backoff = Math.min(LONGEST_BACKOFF_MS, 2 * this.backoff);
    if (problem !== this.problem) log.warn(problem);
    this.problem = problem;
  }

  private readonly handler: Handler = {
    configured: ({ runtime, requestTimeout }) => {
      this.runtime = runtime;
      this.lookupMs = (requestTimeout || REQUEST_TIMEOUT_MS) * FOR_LOOKUPS;
    },
    synchronize: (sandboxes) => {
      const { log } = this.deps;
      log.info(`connected to ${this.runtime}; pods that run already: ${sandboxes.length}`);
      this.problem = "";
      this.backoff = RECONNECT_MS;
      this.waiting = [...sandboxes];
    },
    run: (sandbox) => this.look("run", sandbox),
    create: (sandbox) => this.look("create", sandbox),
    removed: ({ id }) => this.redirector.forget(id),
  };

  /** Looks at one of the pods that ran before. */
  private lookAtNext(): void {
    const sandbox = this.waiting?.shift();
    if (sandbox === undefined) return;
    try {
      this.look("synchronize", sandbox);
    } catch {
      // It runs, and was reported.
    }
  }

  /** Looks at a pod, and reports what was found. @throws what keeps it from running as it should */
  private look(event: Occasion, sandbox: Sandbox): void {
    const { host, log } = this.deps;
    const begin = host.elapsed();
    this.lookupEnd = begin + this.lookupMs;
    const name = `${sandbox.namespace}/${sandbox.name}`;
    const record = new Recorder(VERB, () => host.elapsed() - begin);
    record.note({ pod: name });
    let outcome: PodOutcome = event === "synchronize" ? "failed" : "refused";
    try {
      const found = this.redirector.redirect(sandbox, { mayBeGone: event === "synchronize" });
      outcome = found.kind;
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
  private requests(): Get | undefined {
    const { host, settings } = this.deps;
    const { host: name, port, serviceAccountDir } = settings.apiServer;
    const token = `${serviceAccountDir}/token`;
    if (name === "" || host.access(token) !== 0) return undefined;
    return (path) => {
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
  }
}

function noSocket(directory: string): string {
  return (
    `there is no socket ${directory}/${SOCKET}: containerd 2.0 and later and CRI-O 1.30 and later make it unless NRI ` +
    "is turned off in their configuration; set nri.socketDir where it is in another directory"
  );
}
