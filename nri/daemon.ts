/**
 * The NRI plugin of one node: keeps a connection to the container runtime, and checks each pod that the runtime
 * reports.
 */
import { AdminPath, CALL_LOG, NodePath, NRI_PLUGIN, NRI_VERB } from "../cni/contract";
import { CniError, ErrorCode, reasonOf } from "../cni/errors";
import type { Get } from "../cni/lookup";
import { appendLine, Recorder } from "../host/call-log";
import type { Host } from "../host/port";
import { getByInstaller } from "../kubernetes/lookup-client";
import type { Clock } from "../process/clock";
import { health, metrics, serve } from "../process/http-server";
import type { Log } from "../process/log";
import { Loop } from "../process/loop";
import { type Connection, connectUnix } from "../system/net";
import { NetError } from "../system/net-error";
import type { Sandbox } from "./messages";
import { createMetrics, type PodEvent, type PodOutcome } from "./metrics";
import { Redirector } from "./redirector";
import { type Handler, RegistrationRefused, Session } from "./session";
import type { Settings } from "./settings";

/** Milliseconds within which this plugin connects to a starting runtime. */
const RECONNECT_MS = 100;
/** Maximum back-off if the runtime refuses the plugin or is not understood. */
const LONGEST_BACKOFF_MS = 30_000;
/** A connection that lasted this many milliseconds has worked. */
const LASTED_MS = 10_000;
/** Milliseconds until a failed look-up of a running pod is repeated. */
const RETRY_MS = 30_000;
/** Milliseconds within which the runtime must accept an answer. */
const SEND_MS = 2000;
/** Milliseconds that the runtime allows by default. */
const REQUEST_TIMEOUT_MS = 2000;
/** The share of it for the look-ups of one pod, which may have to wait for another pod's. */
const FOR_LOOKUPS = 1 / 3;
/** Milliseconds between checks of pods that ran before, in which the runtime's calls take precedence. */
const BETWEEN_LOOKS_MS = 1;
const SOCKET = "nri.sock";
/** Explains that a runtime is absent or does not listen yet. */
const ABSENT: Readonly<Record<string, (directory: string) => string>> = {
  ENOENT: (directory) =>
    `there is no socket ${directory}/${SOCKET}: containerd 2.0 and later and CRI-O 1.30 and later make it unless NRI ` +
    "is turned off in their configuration; set nri.socketDir where it is in another directory",
  ECONNREFUSED: (directory) =>
    `nothing listens at ${directory}/${SOCKET}: the container runtime does not run, or is starting`,
  EAGAIN: (directory) => `too many plugins wait at ${directory}/${SOCKET}: the container runtime is busy`,
};

/** How a connection ended, or why it failed. */
interface End {
  readonly problem: string;
  readonly kind: "absent" | "refused";
}

interface DaemonDeps {
  readonly host: Host;
  readonly settings: Settings;
  readonly log: Log;
  readonly clock: Pick<Clock, "now" | "sleep">;
  /** Ends what {@link Daemon.run} does. @default never */
  readonly signal?: AbortSignal;
}

export class Daemon {
  /** The runtime, once it has accepted the plugin. */
  private runtime: string | undefined;
  /** Pods that ran before and were not checked yet; undefined before the runtime has listed them. */
  private waiting: Sandbox[] | undefined;
  /** Running pods with failed look-ups. */
  private later: Sandbox[] = [];
  private nextRetry = 0;
  /** Why the network namespace of one of the runtime's pods cannot be found. */
  private misplaced: string | undefined;
  /** Why the plugin is not connected; empty if it is. */
  private problem = "";
  /** Problems logged since the last working connection. */
  private readonly said = new Set<string>();
  private backoff = RECONNECT_MS;
  private lookupMs = REQUEST_TIMEOUT_MS * FOR_LOOKUPS;
  /** Deadline of the look-ups for the current pod. */
  private lookupEnd = 0;
  private readonly redirector: Redirector;
  private readonly signal: AbortSignal;
  private readonly looks: Loop;
  private readonly metrics = createMetrics({
    connected: () => this.waiting !== undefined,
    synchronized: () => this.isSynchronized,
  });

  constructor(private readonly deps: DaemonDeps) {
    const { host, settings, log, clock, signal = new AbortController().signal } = deps;
    const { stanza, netnsDir, chained } = settings;
    this.redirector = new Redirector({ host, stanza, netnsDir, chained, get: this.get });
    this.signal = signal;
    this.looks = new Loop(async () => this.lookAtNext(), { clock, signal });
    if (stanza.problem !== undefined) log.error(`meshed pods without rules cannot start: ${stanza.problem.message}`);
  }

  /** Runs until the process ends. @throws Error if the port is in use */
  async run(): Promise<void> {
    const server = await serve(
      { port: this.deps.settings.port },
      {
        [AdminPath.live]: () => health(),
        [AdminPath.ready]: () => health(this.unreadiness()),
        [AdminPath.metrics]: () => metrics(this.metrics.registry),
      },
    );
    await Promise.all([this.looks.run(), this.stayConnected()]);
    server.close();
  }

  private get isSynchronized(): boolean {
    return this.waiting?.length === 0;
  }

  private unreadiness(): string | undefined {
    if (this.isSynchronized) return this.misplaced;
    const left = this.waiting?.length ?? 0;
    const running = left === 0 ? "the runtime has not listed its pods yet" : `${left} pods are not looked at yet`;
    return this.problem === "" ? running : this.problem;
  }

  /** Connects to the runtime, and reconnects. */
  private async stayConnected(): Promise<void> {
    const { clock } = this.deps;
    while (!this.signal.aborted) {
      const since = clock.now();
      const end = await this.converse();
      if (this.waiting !== undefined && clock.now() - since >= LASTED_MS) {
        this.backoff = RECONNECT_MS;
        this.said.clear();
      }
      const pauseMs = end.kind === "absent" ? RECONNECT_MS : this.backoff;
      if (end.kind === "refused") this.backoff = Math.min(LONGEST_BACKOFF_MS, 2 * this.backoff);
      this.disconnected(end.problem);
      await clock.sleep(pauseMs, this.signal);
    }
  }

  private disconnected(problem: string): void {
    this.runtime = undefined;
    this.waiting = undefined;
    if (!this.said.has(problem)) this.deps.log.warn(problem);
    this.said.add(problem);
    this.problem = problem;
  }

  /** Makes a connection and answers the runtime's calls on it until it ends. */
  private async converse(): Promise<End> {
    const { settings } = this.deps;
    let connection: Connection;
    try {
      connection = await connectUnix(`${settings.socketDir}/${SOCKET}`);
    } catch (error) {
      const absent = error instanceof NetError ? ABSENT[error.code ?? ""] : undefined;
      if (absent !== undefined) return { problem: absent(settings.socketDir), kind: "absent" };
      return { problem: reasonOf(error), kind: "refused" };
    }
    this.metrics.connections.inc();
    const close = () => connection.close();
    this.signal.addEventListener("abort", close);
    try {
      return { problem: await this.answerCalls(connection), kind: "refused" };
    } finally {
      this.signal.removeEventListener("abort", close);
      close();
    }
  }

  /** Resolves to the reason why the connection ended. */
  private async answerCalls(connection: Connection): Promise<string> {
    const { host, settings } = this.deps;
    let problem = "the container runtime closed the connection";
    const send = (bytes: Uint8Array) => {
      const timer = setTimeout(() => {
        problem = "the runtime does not take what it is sent";
        connection.close();
      }, SEND_MS);
      // The next read reports that the connection broke.
      const over = () => clearTimeout(timer);
      connection.write(bytes).then(over, over);
    };
    const session = new Session({
      name: NRI_PLUGIN,
      index: settings.index,
      handler: this.handler,
      texts: host,
      send,
    });
    try {
      session.register();
      for (let input = await connection.read(); input !== undefined; input = await connection.read())
        session.receive(input);
      return problem;
    } catch (error) {
      if (error instanceof NetError) return problem;
      const prefix = error instanceof RegistrationRefused ? "the container runtime refuses the plugin: " : "";
      return `${prefix}${reasonOf(error)}`;
    }
  }

  private readonly handler: Handler = {
    configured: ({ runtime, requestTimeout }) => {
      this.runtime = runtime;
      this.lookupMs = (requestTimeout || REQUEST_TIMEOUT_MS) * FOR_LOOKUPS;
    },
    synchronize: (sandboxes) => {
      const { log } = this.deps;
      const connected = `connected to ${this.runtime}; pods that run already: ${sandboxes.length}`;
      // A connection that does not last may recur often.
      if (!this.said.has(connected)) log.info(connected);
      this.said.add(connected);
      this.problem = "";
      this.misplaced = undefined;
      for (const sandbox of sandboxes) this.locate(sandbox);
      this.waiting = [...sandboxes];
      this.later = [];
      this.redirector.retain(new Set(sandboxes.map(({ id }) => id)));
      this.looks.wake();
    },
    run: (sandbox) => {
      this.locate(sandbox);
      this.look("run", sandbox);
    },
    create: (sandbox) => this.look("create", sandbox),
    removed: ({ id }) => {
      this.redirector.forget(id);
      this.later = this.later.filter((each) => each.id !== id);
    },
  };

  /** Notes if a pod's network namespace cannot be found: then the other pods' cannot, either. */
  private locate(sandbox: Sandbox): void {
    if (this.misplaced !== undefined) return;
    this.misplaced = this.redirector.misplacement(sandbox);
    if (this.misplaced !== undefined) this.deps.log.error(this.misplaced);
  }

  /**
   * Checks one of the pods that ran before. A pod with an error continues to run, and was reported. @returns the
   * milliseconds until the next check
   */
  private lookAtNext(): number {
    const { now } = this.deps.clock;
    const sandbox = this.waiting?.shift() ?? (now() < this.nextRetry ? undefined : this.later.shift());
    if (sandbox !== undefined) {
      try {
        this.look("synchronize", sandbox);
      } catch (error) {
        if (error instanceof CniError && error.code === ErrorCode.tryAgainLater) {
          this.later.push(sandbox);
          this.nextRetry = now() + RETRY_MS;
        }
      }
    }
    if (this.waiting !== undefined && this.waiting.length > 0) return BETWEEN_LOOKS_MS;
    return this.later.length === 0 ? Number.POSITIVE_INFINITY : Math.max(BETWEEN_LOOKS_MS, this.nextRetry - now());
  }

  /** Checks a pod, and reports the result. @throws the reason why it must not run */
  private look(event: PodEvent, sandbox: Sandbox): void {
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

  /** Looks up through the installer, within the time for the current pod. */
  private readonly get: Get = (path) => {
    const { host, settings } = this.deps;
    const { "own-pods": ownPods } = settings.stanza.stanza;
    // Other pods wait for this one: it does not wait for an installer, and the kubelet tries again.
    const waits = { until: this.lookupEnd, isNeeded: false };
    const found = getByInstaller(host, path, { runDir: NodePath.runDir, ownPods, ...waits });
    this.metrics.lookups.inc();
    return found;
  };
}
