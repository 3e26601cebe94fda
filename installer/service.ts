import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Log } from "../cni/log";
import { readApiServer } from "../kubernetes/in-cluster";
import { AccessCheck } from "./api/access";
import { fetchTransport as transport } from "./api/api";
import { Credentials } from "./api/credentials";
import { kubeconfig } from "./api/kubeconfig";
import { StartupTaint } from "./api/node-taint";
import { OwnDaemonSet } from "./api/own-daemonset";
import { PodEvents } from "./api/pod-events";
import { hostFacts } from "./host/host-facts";
import { Mounts } from "./host/mounts";
import { isCrio, preflight } from "./host/preflight";
import { askForRuntime, passesOverBroken } from "./host/runtime";
import type { Disk } from "./node/disk";
import { Keeper, type Status } from "./node/keeper";
import { linkedDirectories } from "./node/node-path";
import { type Places, placesOf } from "./node/places";
import { pluginFile } from "./node/plugin-file";
import type { Settings } from "./settings";
import { askForDaemonSet, decide, decideBySettings, type StopDecision } from "./stop";
import { type Answer, type Server, serve } from "./telemetry/health";
import { createInstruments } from "./telemetry/instruments";
import { follow, Tail } from "./telemetry/plugin-log";
import { readStanza } from "./watching/stanza-source";
import { Watcher } from "./watching/watch";

interface Outside {
  readonly settings: Settings;
  readonly disk: Disk;
  readonly sleep: (ms: number) => Promise<unknown>;
  readonly log: Log;
  /** This process among all installers of this node. */
  readonly owner: string;
}

/** A look without an event: for what no event tells, such as a directory that was replaced. */
const LOOK_EVERY_MS = 10_000;
/** The same where the kernel refuses a watch. */
const POLL_EVERY_MS = 1_000;
const RENEW_EVERY_MS = 5_000;
/** What the API server did not tell is asked for again; it may never tell where the role is a user's own. */
const ASK_AGAIN_MS = 60_000;
const LIVE_WITHIN_MS = 60_000;

/** The token of the kubeconfig that lies on the node. */
function knownToken({ kubeconfig: path }: Places): string | undefined {
  try {
    const { users } = JSON.parse(readFileSync(path, "utf8")) as { users?: { user?: { token?: string } }[] };
    return users?.[0]?.user?.token;
  } catch {
    return undefined;
  }
}

/** Runs one installer: looks when something changes, renews the token, answers health checks, and stops in order. */
export class Service {
  /** Rejects when only another container can go on. */
  readonly failed: Promise<never>;
  private fail: (error: unknown) => void = () => undefined;
  private readonly instruments = createInstruments();
  private readonly places: Places;
  private readonly mounts: Mounts;
  private readonly keeper: Keeper;
  private readonly credentials: Credentials;
  private readonly watcher: Watcher;
  private readonly tail: Tail;
  private readonly taint: StartupTaint | undefined;
  private readonly podEvents: PodEvents | undefined;
  private readonly daemonSet: OwnDaemonSet | undefined;
  private status: Status = { problem: "starting" };
  private lookedAt = 0;
  private lookDue = false;
  private looking: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private renewal: NodeJS.Timeout | undefined;
  private server: Server | undefined;
  private runtime: string | undefined;
  private learnedAt = Number.NEGATIVE_INFINITY;
  private unwatched = "";
  private wasReady = false;
  private renewing = false;
  private stopping = false;

  constructor(private readonly outside: Outside) {
    const { settings, disk, sleep, log, owner } = outside;
    this.failed = new Promise((_, reject) => {
      this.fail = reject;
    });
    this.places = placesOf(settings);
    this.mounts = new Mounts([this.places.netDir, this.places.binDir]);
    const own = () => readApiServer(settings.cluster);
    const { pluginAccount: account } = settings;
    const renewals = this.instruments.tokenRenewals;
    const { namespace, name } = settings.pod ?? { namespace: "default", name: "linkerd-cni" };
    const pod = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const access = new AccessCheck({ transport, path: pod });
    const verify = access.check.bind(access);
    const tools = { own, transport, verify, log, renewals, ...(account === undefined ? {} : { account }) };
    this.credentials = new Credentials(tools, knownToken(this.places));
    const wanted = () => ({
      chained: settings.chained,
      stanza: readStanza(settings, this.daemonSet?.name),
      kubeconfig: kubeconfig(this.credentials.current(Date.now())),
    });
    const plugin = pluginFile();
    const { places, instruments } = this;
    this.keeper = new Keeper({
      places,
      owner,
      wanted,
      disk,
      plugin,
      passesOverBroken: () => passesOverBroken(this.runtime),
      log,
      instruments,
      sleep,
    });
    this.watcher = new Watcher(
      () => this.watched(),
      () => void this.look(),
    );
    this.tail = new Tail(settings.pluginLog);
    const connect = () => transport(own());
    this.daemonSet = settings.pod && new OwnDaemonSet({ namespace, pod: name, connect, log });
    const now = () => new Date();
    const instance = settings.nodeName ?? settings.identity;
    this.podEvents = settings.podEvents ? new PodEvents({ connect, instance, log, now }) : undefined;
    this.taint =
      settings.nodeTaint && new StartupTaint({ ...settings.nodeTaint, connect, log, now: () => performance.now() });
    this.instruments.read({
      chained: () => this.status.problem === undefined,
      ready: () => this.wasReady,
    });
  }

  async start(): Promise<void> {
    const { settings, log } = this.outside;
    if (settings.healthPort > 0) this.listen(settings.healthPort);
    for (const { level, message } of preflight(hostFacts(this.places, undefined))) log[level](message);
    if (!settings.chained) log.info("the node's CNI configuration is left alone: Multus has to call the plugin");
    await Promise.all([this.credentials.renew(Date.now()), this.learn()]);
    if (this.stopping) return;
    void this.look();
    this.renewal = setInterval(() => void this.renew(), RENEW_EVERY_MS);
    await this.renew();
  }

  /** Decides what becomes of the node, and does it. */
  async stop(): Promise<void> {
    this.end();
    const [{ remove, why, keepsPlugin, otherBinDir }] = await Promise.all([this.decide(), this.looking]);
    const { log, settings } = this.outside;
    if (remove || otherBinDir !== undefined) await this.learnRuntime();
    const keepPlugin = isCrio(this.runtime) || (this.runtime === undefined && settings.nodeName !== undefined);
    log.info(`stopping: ${why}: ${remove ? "removing what was installed" : "leaving all in place"}`);
    if (remove && keepsPlugin) log.info(`${this.places.plugin} stays: the chain in the other directory may call it`);
    else if (remove && keepPlugin)
      log.info(`${this.runtime ?? "the container runtime"} may call the plugin for old pods: it stays`);
    if (remove) await this.keeper.remove(keepPlugin || keepsPlugin === true);
    else if (otherBinDir !== undefined) await this.keeper.leaveBinDir(otherBinDir, keepPlugin);
  }

  private end(): void {
    this.stopping = true;
    clearTimeout(this.timer);
    clearInterval(this.renewal);
    this.watcher.close();
    this.server?.stop(true);
  }

  private watched(): readonly string[] {
    const { settings } = this.outside;
    const mounted = "file" in settings.stanza ? [dirname(settings.stanza.file)] : [];
    const { netDir, binDir } = this.places;
    const linked = linkedDirectories(netDir, this.places);
    return [...new Set([netDir, binDir, settings.cluster.serviceAccountDir, ...mounted, ...linked])];
  }

  /** Looks at the node; what happens during a look is looked at after it. Never rejects. */
  private look(): Promise<void> {
    this.lookDue = true;
    this.looking ??= this.lookWhileDue();
    return this.looking;
  }

  private async lookWhileDue(): Promise<void> {
    while (this.lookDue && !this.stopping) {
      this.lookDue = false;
      await this.lookOnce();
    }
    this.looking = undefined;
  }

  private async lookOnce(): Promise<void> {
    try {
      this.mounts.check();
    } catch (error) {
      this.end();
      this.fail(error);
      return;
    }
    clearTimeout(this.timer);
    const refused = this.watcher.arm();
    this.sayUnwatched(refused);
    this.status = await this.keeper.reconcile(performance.now());
    this.followPlugin();
    this.lookedAt = performance.now();
    if (this.stopping) return;
    const pause = refused.size > 0 ? POLL_EVERY_MS : LOOK_EVERY_MS;
    this.timer = setTimeout(() => void this.look(), Math.min(this.status.againInMs ?? pause, pause));
  }

  private sayUnwatched(refused: ReadonlyMap<string, string>): void {
    const text = [...refused].map(([directory, reason]) => `${directory} (${reason})`).join(", ");
    if (text !== this.unwatched && text !== "") {
      this.outside.log.warn(`cannot watch ${text}: looking every ${POLL_EVERY_MS} ms instead`);
    }
    this.unwatched = text;
  }

  private followPlugin(): void {
    try {
      const { log } = this.outside;
      follow(this.tail, { log, instruments: this.instruments, events: this.podEvents });
    } catch (error) {
      this.outside.log.debug(`${this.outside.settings.pluginLog}: ${String(error)}`);
    }
  }

  /** What is due from time to time, unless the last time is still at it. Never rejects. */
  private async renew(): Promise<void> {
    if (this.renewing) return;
    this.renewing = true;
    try {
      if (await this.hasOtherToken()) void this.look();
      else this.followPlugin();
      if (performance.now() - this.learnedAt >= ASK_AGAIN_MS && (await this.learn())) void this.look();
      await Promise.all([this.liftTaint(), this.podEvents?.publish()]);
    } catch (error) {
      this.outside.log.warn(error instanceof Error ? error.message : String(error));
    } finally {
      this.renewing = false;
    }
  }

  /** Probes ask, too; where they are off, nobody else would notice that the token is refused. */
  private async hasOtherToken(): Promise<boolean> {
    const unreadable = { kind: "unknown" } as const; // the look at the node says so
    const verdict = await this.credentials.verify(Date.now()).catch(() => unreadable);
    const renewed = await this.credentials.renew(Date.now());
    // A token ends with the Node object that it is bound to.
    if (renewed) this.taint?.lookAgain();
    return renewed || verdict.kind === "refused";
  }

  private async liftTaint(): Promise<void> {
    if (this.taint?.isDue !== true) return;
    if ((await this.ready()).status === 200) await this.taint.lift();
  }

  /** Asks the API server what it has not told yet. Tells whether anything is known since that changes the node. */
  private async learn(): Promise<boolean> {
    this.learnedAt = performance.now();
    const news = await Promise.all([this.daemonSet?.learn(), this.learnRuntime()]);
    return news.includes(true);
  }

  /** Asks where the runtime is not known yet. Tells whether it is known since. */
  private async learnRuntime(): Promise<boolean> {
    const { settings, log } = this.outside;
    if (settings.nodeName === undefined || this.runtime !== undefined) return false;
    const path = `/api/v1/nodes/${settings.nodeName}`;
    this.runtime = await askForRuntime(() => transport(readApiServer(settings.cluster)), path);
    if (this.runtime === undefined) return false;
    const facts = { directories: [], pluginBytes: 0, kernel: {}, runtime: this.runtime };
    for (const { level, message } of preflight(facts)) log[level](message);
    return true;
  }

  private async decide(): Promise<StopDecision> {
    const { settings, sleep, log } = this.outside;
    const decided = decideBySettings(settings);
    if (decided !== undefined) return decided;
    await this.daemonSet?.learn();
    const { nodeName: node, pod } = settings;
    const name = this.daemonSet?.name;
    if (pod === undefined) return { remove: false, why: "POD_NAMESPACE and POD_NAME do not name our pod" };
    if (name === undefined) return { remove: false, why: `pod ${pod.namespace}/${pod.name} belongs to no DaemonSet` };
    const ask = () => {
      const access = this.credentials.ofPlugin(Date.now());
      const own = transport(readApiServer(settings.cluster));
      const plugin = access && transport(access);
      const daemonSet = { namespace: pod.namespace, name };
      const directories = this.places.onNode;
      return askForDaemonSet({ daemonSet, node, pod: pod.name, directories, own, plugin });
    };
    try {
      const tell = (why: string) => log.info(`stopping: ${why}: asking again`);
      return await decide(ask, { sleep, now: () => performance.now() }, tell);
    } catch (error) {
      return { remove: false, why: error instanceof Error ? error.message : String(error) };
    }
  }

  private listen(port: number): void {
    // A look that waits for a slow disk would begin anew, and wait again, in a container that is started in its place.
    const live = () => this.looking !== undefined || performance.now() - this.lookedAt < LIVE_WITHIN_MS;
    const answers = {
      "/live": () => (live() ? { status: 200, body: "live\n" } : { status: 503, body: "has not looked at the node\n" }),
      "/ready": () => this.ready(),
      "/metrics": () => this.metrics(),
    };
    try {
      this.server = serve(port, answers);
    } catch (error) {
      this.outside.log.error(`health port ${port}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  private async metrics(): Promise<Answer> {
    const answer = await this.ready().catch(() => undefined);
    this.wasReady = answer?.status === 200;
    return { status: 200, body: this.instruments.metrics.text() };
  }

  /** Ready means: a pod that starts now is chained, unless Multus calls the plugin, and the plugin can ask for it. */
  private async ready(): Promise<Answer> {
    const { problem } = this.status;
    if (problem !== undefined) return { status: 503, body: `${problem}\n` };
    const verdict = await this.credentials.verify(Date.now());
    if (verdict.kind === "refused") return { status: 503, body: `${verdict.why}\n` };
    const { warning } = this.status;
    return { status: 200, body: warning === undefined ? "ready\n" : `ready\nwarning: ${warning}\n` };
  }
}
