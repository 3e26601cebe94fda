import { AdminPath, ApiReach, CNI_NAME } from "../cni/contract";
import { reasonOf } from "../cni/errors";
import { isCrio, passesAnnotations, passesOverBroken } from "../cni/runtime";
import type { ApiServer } from "../kubernetes/api-server";
import { readApiServer } from "../kubernetes/in-cluster";
import { systemClock } from "../process/clock";
import { type Answer, type HttpServer, health, metrics, serve } from "../process/http-server";
import type { Log } from "../process/log";
import { Loop } from "../process/loop";
import { dirname } from "../system/path";
import { ApiConnection } from "./api/api-connection";
import { isServed, LookupServer } from "./api/lookup-server";
import { OwnDaemonSet } from "./api/own-daemonset";
import { PodEvents } from "./api/pod-events";
import { UnboundToken } from "./api/unbound-token";
import type { Disk } from "./apply/disk";
import { hostFacts, preflight } from "./host/preflight";
import { askForRuntime } from "./host/runtime";
import { Reconciler } from "./reconcile/reconciler";
import { Scheduler } from "./reconcile/scheduler";
import { stanzaForNode } from "./reconcile/stanza";
import { askForDaemonSet, decide, decideBySettings, type StopDecision } from "./reconcile/stop-decision";
import type { Settings } from "./settings";
import { readAttachments } from "./state/attachments";
import { Mounts } from "./state/mounts";
import { watchedDirectories } from "./state/observe";
import { type Paths, pathsOf } from "./state/paths";
import { pluginFile } from "./state/plugin-file";
import { StartupTaint } from "./taint";
import { createInstruments } from "./telemetry/instruments";
import { follow, parse, Tail } from "./telemetry/plugin-log";

interface ServiceDeps {
  readonly settings: Settings;
  readonly disk: Disk;
  readonly sleep: (ms: number) => Promise<unknown>;
  readonly log: Log;
}

const WORK_EVERY_MS = 5_000;
/** How long the first reconciliation waits for what it has to know. */
const ASK_FIRST_MS = 4_000;
/**
 * Interval of requests that the API server has not answered, or always refuses with a user's own role; also for the
 * runtime.
 */
const ASK_AGAIN_MS = 60_000;

/** Runs one installer: reconciles the node, looks pods up, answers health checks, and stops in order. */
export class Service {
  private readonly stopping = new AbortController();
  private readonly instruments = createInstruments();
  private readonly paths: Paths;
  private readonly reconciler: Reconciler;
  private readonly unbound: UnboundToken;
  private readonly connection: ApiConnection;
  private readonly lookups: LookupServer;
  /** Keeps the look-ups served. */
  private readonly serving: Loop;
  private readonly mounts: Mounts;
  private readonly scheduler: Scheduler;
  private readonly tail: Tail;
  private readonly taint: StartupTaint | undefined;
  private readonly podEvents: PodEvents | undefined;
  private readonly daemonSet: OwnDaemonSet | undefined;
  private scheduled: Promise<void> | undefined;
  private server: HttpServer | undefined;
  private runtime: string | undefined;
  private learnedAt = Number.NEGATIVE_INFINITY;
  private wasReady = false;

  constructor(private readonly deps: ServiceDeps) {
    const { settings, disk, sleep, log } = deps;
    this.paths = pathsOf(settings);
    const own = () => readApiServer(settings.cluster);
    const { namespace, name } = settings.pod ?? { namespace: "default", name: CNI_NAME };
    const pod = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const transport = (access: ApiServer) => this.connection.as(access);
    const clock = systemClock;
    this.unbound = new UnboundToken({ own, transport, log, clock });
    this.connection = new ApiConnection({
      access: own,
      path: pod,
      log,
      clock,
    });
    this.lookups = new LookupServer({
      path: settings.lookupSocket,
      connection: this.connection,
      isOwner: () => this.reconciler.isOwner,
      log,
    });
    this.serving = new Loop(() => this.keepLookups(), { clock, signal: this.stopping.signal });
    const wanted = () => ({
      chained: settings.chained,
      chaining: settings.chaining,
      runtime: this.runtime,
      multipleBinDirs: settings.multipleBinDirs,
      stanza: stanzaForNode(settings, this.daemonSet?.name),
    });
    const plugin = pluginFile();
    const { paths, instruments } = this;
    this.reconciler = new Reconciler({
      paths,
      owner: settings.identity,
      wanted,
      disk,
      plugin,
      accepts: () => this.connection.verdict(),
      isServed: () => isServed(settings.lookupSocket),
      passesOverBroken: () => passesOverBroken(this.runtime),
      log,
      instruments,
      sleep,
    });
    this.mounts = new Mounts([...paths.mounted, dirname(settings.pluginLog), settings.cniCache.here]);
    this.scheduler = new Scheduler({
      reconciler: this.reconciler,
      mounts: this.mounts,
      watched: () => this.watched(),
      reconciled: () => {
        this.followPlugin();
        this.serving.wake();
      },
      log,
      clock,
      signal: this.stopping.signal,
    });
    this.tail = new Tail(settings.pluginLog);
    const connect = () => this.connection.as(own());
    this.daemonSet = settings.pod && new OwnDaemonSet({ namespace, pod: name, connect, log });
    const instance = settings.nodeName ?? settings.identity;
    this.podEvents = settings.nriEvents ? new PodEvents({ connect, instance, log, clock }) : undefined;
    this.taint = settings.nodeTaint && new StartupTaint({ ...settings.nodeTaint, connect, log, clock });
    this.instruments.read({
      chained: () => this.scheduler.status.problem === undefined,
      ready: () => this.wasReady,
      reached: () => this.connection.problem === undefined,
    });
  }

  /** Runs until {@link stop}. @throws if only a new container can continue */
  async run(): Promise<void> {
    const { settings, log } = this.deps;
    const { signal } = this.stopping;
    if (settings.healthPort > 0) await this.listen(settings.healthPort);
    for (const { level, message } of preflight(hostFacts(this.paths))) log[level](message);
    this.readEarlier();
    if (!settings.chained) {
      const redirects = settings.nriEvents ? "the NRI plugin redirects pods" : "Multus has to call the plugin";
      log.info(`the node's CNI configuration is left alone: ${redirects}`);
    }
    // One after the other, over one connection. A silent API server delays the chain only so long.
    const asked = this.learn().then((isNews) => {
      if (isNews) this.scheduler.wake();
    });
    // Meanwhile the plugin is copied; the first run waits for it when it is due.
    void this.reconciler.prepare();
    await Promise.race([asked, this.deps.sleep(ASK_FIRST_MS)]);
    if (signal.aborted) return;
    this.scheduled = this.scheduler.run();
    const periodic = new Loop(() => this.work(), { clock: systemClock, signal });
    try {
      // The first check also tells whether the token is accepted, so the others need not ask.
      const working = this.connection.checkIfDue().then(() => periodic.run());
      await Promise.all([this.scheduled, working, this.serving.run()]);
    } finally {
      this.end();
    }
  }

  /** Decides whether to keep or to restore the node, and does it. */
  async stop(): Promise<void> {
    this.end();
    const [{ remove, why, all = false }] = await Promise.all([
      this.decide(),
      this.scheduled?.catch(() => undefined),
      this.lookups.close(),
    ]);
    const { log, settings } = this.deps;
    if (remove && this.runtime === undefined) await this.learnRuntime();
    const isUnknown = this.runtime === undefined && settings.nodeName !== undefined;
    const keepPlugin = isCrio(this.runtime) || isUnknown;
    const attachments = () => readAttachments(settings.cniCache.here, keepPlugin);
    log.info(`stopping: ${why}: ${remove ? "removing what was installed" : "leaving everything in place"}`);
    const isSibling = (owner: string) => this.daemonSet?.has(owner);
    this.connection.close();
    if (remove) await this.reconciler.remove({ keepPlugin, attachments, ...(all ? { all: isSibling } : {}) });
    else await this.reconciler.leave().catch((error) => log.debug(`stopping: ${reasonOf(error)}`));
  }

  private end(): void {
    this.stopping.abort();
    this.server?.close();
  }

  private watched(): readonly string[] {
    const { settings } = this.deps;
    const mounted = "file" in settings.stanza ? [dirname(settings.stanza.file)] : [];
    return [...watchedDirectories(this.paths), ...mounted];
  }

  private readEarlier(): void {
    if (!this.deps.settings.nriEvents) return;
    try {
      this.podEvents?.takeEarlier(this.tail.earlier().map((line) => parse(line) ?? {}));
    } catch (error) {
      this.deps.log.debug(reasonOf(error));
    }
  }

  private followPlugin(): void {
    try {
      const { log, settings } = this.deps;
      follow(this.tail, {
        log,
        isShown: settings.showsPluginLog,
        instruments: this.instruments,
        events: this.podEvents,
      });
    } catch (error) {
      this.deps.log.debug(`${this.deps.settings.pluginLog}: ${reasonOf(error)}`);
    }
  }

  /** Returns when it is due again. */
  private async keepLookups(): Promise<number> {
    const dueMs = await this.connection.checkIfDue();
    if (!this.stopping.signal.aborted) await this.lookups.keep();
    return Math.min(dueMs, WORK_EVERY_MS);
  }

  /** The periodic work. Returns when it is due again. */
  private async work(): Promise<number> {
    try {
      this.followPlugin();
      if (await this.learnAgain()) this.scheduler.wake();
      await Promise.all([this.unbound.renew(), this.liftTaint(), this.podEvents?.publish()]);
    } catch (error) {
      this.deps.log.warn(reasonOf(error));
    }
    return WORK_EVERY_MS;
  }

  private async liftTaint(): Promise<void> {
    if (this.taint?.isDue !== true) return;
    if ((await this.ready()).status === 200) await this.taint.lift();
  }

  /**
   * A runtime that is replaced by one that reads no drop-ins starts pods without a redirect until this notices. Returns
   * whether the answers change the node.
   */
  private async learnAgain(): Promise<boolean> {
    if (performance.now() - this.learnedAt >= ASK_AGAIN_MS) return this.learn();
    const canChange = this.scheduler.status.choice?.way === "dropin";
    return canChange && this.connection.problem === undefined && this.learnRuntime();
  }

  /** Asks the API server for what is still unknown. Returns whether the answers change the node. */
  private async learn(): Promise<boolean> {
    this.learnedAt = performance.now();
    const news = [await this.daemonSet?.learn(), await this.learnRuntime()];
    return news.includes(true);
  }

  /** Asks for the runtime, which may be replaced while we run. Returns whether it changed. */
  private async learnRuntime(): Promise<boolean> {
    const { settings, log } = this.deps;
    if (settings.nodeName === undefined) return false;
    const connect = () => this.connection.as(readApiServer(settings.cluster));
    const found = await askForRuntime(connect, settings.nodeName);
    if (found === undefined || found === this.runtime) return false;
    this.runtime = found;
    const [passes, thus] = passesAnnotations(found)
      ? ["passes", "unmeshed pods need no API request"]
      : ["does not pass", "each pod's start asks the API server"];
    log.info(`container runtime ${found} ${passes} pod annotations: ${thus}`);
    return true;
  }

  private async decide(): Promise<StopDecision> {
    const { settings, sleep, log } = this.deps;
    const decided = decideBySettings(settings);
    if (decided !== undefined) return decided;
    await this.daemonSet?.learn();
    const { nodeName: node, pod } = settings;
    const name = this.daemonSet?.name;
    if (pod === undefined) return { remove: false, why: "POD_NAMESPACE and POD_NAME do not name our pod" };
    if (name === undefined) return { remove: false, why: `pod ${pod.namespace}/${pod.name} belongs to no DaemonSet` };
    const ask = () => {
      const { access } = this.unbound;
      const own = this.connection.as(readApiServer(settings.cluster));
      const unbound = access && this.connection.as(access);
      const daemonSet = { namespace: pod.namespace, name };
      return askForDaemonSet({ daemonSet, node, pod: pod.name, own, unbound });
    };
    try {
      // What this container sees is not the node's any more.
      this.mounts.check();
      const tell = (why: string) => log.info(`stopping: ${why}: asking again`);
      return await decide(ask, { sleep, now: systemClock.now }, tell);
    } catch (error) {
      return { remove: false, why: reasonOf(error) };
    }
  }

  private async listen(port: number): Promise<void> {
    try {
      this.server = await serve(
        { port },
        {
          [AdminPath.live]: () =>
            this.scheduler.isLive ? { status: 200, body: "live\n" } : health("has not looked at the node"),
          [AdminPath.ready]: () => this.ready(),
          [AdminPath.metrics]: async () => {
            const answer = await this.ready().catch(() => undefined);
            this.wasReady = answer?.status === 200;
            return metrics(this.instruments.registry);
          },
        },
      );
    } catch (error) {
      this.deps.log.error(`health port ${port}: ${reasonOf(error)}`);
    }
  }

  /** Ready means: a pod that starts now is chained, unless others redirect it, and the plugin can look it up. */
  private async ready(): Promise<Answer> {
    const { problem, choice } = this.scheduler.status;
    this.mounts.check();
    if (problem !== undefined) return health(problem);
    const verdict = await this.connection.verdict();
    if (verdict.kind === "refused") return health(verdict.why);
    if (this.lookups.unserved !== "") return health(this.lookups.unserved);
    const unreached = this.connection.problem && `${ApiReach.lost}: ${this.connection.problem}`;
    const lines = [
      "ready",
      ...(choice === undefined ? [] : [`chaining: ${choice.way}: ${choice.why}`]),
      ...(unreached === undefined ? [] : [`warning: ${unreached}`]),
    ];
    return { status: 200, body: `${lines.join("\n")}\n` };
  }
}
