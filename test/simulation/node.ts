/** A simulated node: its files, its owner, its runtime, the API server, and up to three installers. */
import { TEMPORARY } from "../../installer/state/paths";
import type { Ended } from "../../system/child";
import { ApiServer, type Mood, NAMESPACE } from "./api-server";
import { Clock, type Random, randomOf } from "./clock";
import { type Image, type Pod, Rollout, type Strategy, WHO, type Who } from "./daemonset";
import { Disk, Files, type Inode, losePower, syncAll, textOf } from "./files";
import type { Program } from "./load";
import { End, type Peer } from "./network";
import { type AgentName, Owner } from "./owner";
import { type Machine, type Operation, Process } from "./process";
import { type Moment, promised, within } from "./promises";
import { BIN_DIR, NET_DIR, OTHERS, OURS, READ_WITHIN_MS, READERS, type ReaderName, Runtime } from "./runtime";

const PLUGINS: Readonly<Record<Image, string>> = { one: "ours 1", two: "ours 2", once: "ours, once", broken: "broken" };

/** How a history begins. */
export interface Setup {
  readonly seed: number;
  readonly runtime: ReaderName;
  readonly owner: AgentName;
  /** Processes can run in the middle of operations of others, which takes twice as long. */
  readonly separate: boolean;
}

/** An action in the middle of an operation of an installer. */
interface Place {
  readonly who: Who;
  /** Before this operation, such as `rename 10-k.conflist`. */
  readonly before: Operation;
  /** The first is 1, counted from the step on. */
  readonly nth: number;
}

export type Action =
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "start"; readonly who: Who; readonly image: Image }
  | { readonly do: "kill" | "stop" | "freeze" | "thaw"; readonly who: Who }
  | { readonly do: "write"; readonly way: "in place" | "by rename" }
  | { readonly do: "fight"; readonly ms: number }
  | { readonly do: "API server"; readonly is: Mood }
  | { readonly do: "runtime"; readonly is: ReaderName }
  | { readonly do: "pod" | "lose power" | "boot" | "settle" | "uninstall" | "replace net.d" }
  | { readonly do: "rollout"; readonly to: Image; readonly by: Strategy }
  | { readonly do: "disk"; readonly is: "full" | "read-only" | "fine" };
export type Step = Action & { readonly at?: Place };

const PROMISES = Object.entries(promised);
/** Operations after which the node's files are others. */
const CHANGES = /^(rename|unlink|write|exchange|rmdir) /;
const COPY = `write ${OURS}${TEMPORARY}`;
const NAMES: Readonly<Record<Who, string>> = { A: "bcdfg", B: "hjklm", C: "npqrs" };
const HOST = "/host";
const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
const VERSION = '{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}';
const STANZA = `{"name":"${OURS}","type":"${OURS}","log_level":"info","kubernetes":{"kubeconfig":"__KUBECONFIG_FILEPATH__"}}`;
/** Directories of the node that installers see; the last ones are in memory. */
const MOUNTED = [NET_DIR, BIN_DIR, "/var/lib/cni", "/run/linkerd-cni"];
const IN_MEMORY = "/run";
/** The kubelet's first pause before it starts a container again. */
const RESTART_MS = 10_000;
/** The kubelet's SIGKILL after SIGTERM. */
const GRACE_MS = 30_000;

export class Node implements Machine {
  readonly clock = new Clock();
  readonly random: Random;
  readonly disk = new Disk(this.clock);
  readonly files = new Files(this.disk);
  readonly sockets = new Map<number, (of: Peer) => End>();
  readonly api = new ApiServer(this.clock);
  readonly owner: Owner;
  readonly runtime: Runtime;
  readonly pods = new Map<Who, Pod>();
  /** What happened, in words, with times in seconds. */
  readonly log: string[] = [];
  /** Broken promises. */
  readonly broken: { readonly promise: string; readonly why: string }[] = [];
  /** From this time on the node must be chained, if an installer can. */
  chainedFrom = Number.POSITIVE_INFINITY;
  /** When installers changed the owner's file. */
  readonly writes: number[] = [];
  /** When installers copied the plugin. */
  readonly copies: number[] = [];
  isUninstalled = false;
  /** When the owner wrote what was chained; undefined if it need not be chained any more. */
  chained: number | undefined;
  /** The API server said for long enough that our accounts are deleted, while an installer stopped. */
  mayBeRemoved = false;
  /** What the owner has written lately. */
  private ownerWrites: number[] = [];
  private readonly armed = new Set<{ readonly step: Step; readonly at: Place; readonly from: number }>();
  private readonly last = new Map<Process, Operation>();
  private runtimeKnownFrom = 0;
  private wasStarted = new Set<Who>();
  private rollout: Rollout | undefined;
  /** Executables that run no more. */
  private readonly spent = new WeakSet<Inode>();

  constructor(
    private readonly program: Program,
    private readonly setup: Setup,
  ) {
    this.random = randomOf(setup.seed);
    const { files, clock, random } = this;
    for (const directory of MOUNTED) files.makeDirectories(directory);
    for (const plugin of OTHERS) files.write(`${BIN_DIR}/${plugin}`, "fine", 0o755);
    this.owner = new Owner(setup.owner, { files, clock, random });
    const runs = (name: string) => this.runs(files.inodeIfAny(`${BIN_DIR}/${name}`));
    this.runtime = new Runtime({ files, clock, random, runs });
    this.changeRuntime(setup.runtime);
    this.clock.advance(1_000);
    syncAll(files.root);
  }

  connect(of: Process): End | "refused" | "silent" {
    if (this.api.mood === "silent") return "silent";
    if (this.api.mood === "down") return "refused";
    return End.pair(this.clock, of, this.api.serve())[0];
  }

  execute(_process: Process, inode: Inode | undefined): Ended {
    if (inode === undefined) return { error: "ENOENT", stdout: "", stderr: "" };
    if (!this.runs(inode) || this.spent.has(inode)) return { error: "ENOEXEC", stdout: "", stderr: "" };
    if (textOf(inode.bytes) === PLUGINS.once) this.spent.add(inode);
    return { code: 0, stdout: VERSION, stderr: "" };
  }

  /** Before an operation of an installer: its last one is over. */
  before(process: Process, operation: Operation): void {
    const last = this.last.get(process);
    this.last.set(process, operation);
    if (last === COPY) this.copies.push(this.clock.now);
    if (last !== undefined && CHANGES.test(last)) {
      if (last.endsWith(` ${this.owner.agent.file}`)) this.writes.push(this.clock.now);
      const [, plugin] = /^rename (linkerd-cni\S*)$/.exec(last) ?? [];
      if (plugin !== undefined && this.isSpent(plugin)) this.expectChain(within.takeOver);
      this.look("at any time", `after ${last} of ${process.name}`);
    }
    for (const each of this.armed) {
      const { step, at, from } = each;
      if (at.before !== operation || this.pods.get(at.who)?.process !== process) continue;
      if ((process.operations.get(operation) ?? 0) !== from + at.nth) continue;
      this.armed.delete(each);
      process.isFrozen = true;
      this.act(step);
      process.isFrozen = false;
    }
  }

  /** Takes a step: now, or later in the middle of an operation. */
  take(step: Step): void {
    const { at } = step;
    if (at === undefined) this.act(step);
    else this.armed.add({ step, at, from: this.pods.get(at.who)?.process.operations.get(at.before) ?? 0 });
  }

  /** Takes back the steps that have not happened. */
  disarm(): void {
    this.armed.clear();
  }

  /** Judges the promises of a moment. */
  look(moment: Moment, when: string): void {
    for (const [name, promise] of PROMISES) {
      if (promise.when !== moment || this.broken.length > 0) continue;
      const why = promise.broken(this);
      if (why === undefined) continue;
      this.broken.push({ promise: name, why });
      this.say(`BROKEN ${when}: ${name}: ${why}`);
    }
  }

  say(text: string): void {
    this.log.push(`${(this.clock.now / 1000).toFixed(3)} ${text}`);
  }

  /** Whether installers have had the time to see that the runtime is another one. */
  get isRuntimeKnown(): boolean {
    return this.clock.now > this.runtimeKnownFrom;
  }

  /** Installers that run, and can do their work. */
  get working(): readonly Pod[] {
    const pods = [...this.pods.values()];
    const isAble = ({ process, image, stoppedAt }: Pod) =>
      !process.isDead && !process.isFrozen && (image === "one" || image === "two") && stoppedAt === undefined;
    return pods.filter(isAble);
  }

  /** Whether an executable runs here. */
  private runs(inode: Inode | undefined): boolean {
    return inode !== undefined && (inode.mode & 0o111) !== 0 && /^(fine|ours)/.test(textOf(inode.bytes));
  }

  /** Whether a plugin has run once and fails from now on, which the installer that ran it cannot know. */
  isSpent(plugin: string): boolean {
    const inode = this.files.inodeIfAny(`${BIN_DIR}/${plugin}`);
    return inode !== undefined && this.spent.has(inode);
  }

  private act(step: Step): void {
    if (step.do !== "wait") this.say(inWords(step));
    switch (step.do) {
      case "wait":
        this.clock.advance(step.ms);
        break;
      case "start":
        this.start(step.who, step.image);
        break;
      case "kill":
        this.kill(step.who);
        break;
      case "stop":
        this.stop(step.who);
        break;
      case "freeze":
      case "thaw":
        this.freeze(step.who, step.do === "freeze");
        break;
      case "write":
        this.owner.write(step.way);
        this.ownerWrote();
        break;
      case "fight":
        this.owner.fight(step.ms);
        this.expectChain(step.ms + within.contest);
        break;
      case "API server":
        this.api.mood = step.is;
        this.expectRemoval();
        this.expectChain(step.is === "up" ? within.refusal : 0);
        break;
      case "runtime":
        this.changeRuntime(step.is);
        break;
      case "pod":
        this.startPod();
        break;
      case "lose power":
        losePower(this.files.root, this.random);
        this.boot();
        break;
      case "boot":
        this.boot();
        break;
      case "settle":
        this.settle();
        break;
      case "uninstall":
        this.uninstall();
        break;
      case "rollout":
        this.rollout?.end();
        this.rollout = new Rollout(this, step.to, step.by);
        break;
      case "replace net.d":
        this.replaceNetDir();
        break;
      case "disk":
        this.disk.isFull = step.is === "full";
        this.disk.isReadOnly = step.is === "read-only";
        this.expectChain(within.repair);
        break;
    }
  }

  /** The node need not be chained for so long. */
  private expectChain(ms: number): void {
    const at = this.clock.now + ms;
    if (this.chainedFrom === Number.POSITIVE_INFINITY || at > this.chainedFrom) this.chainedFrom = at;
    const due = this.chainedFrom;
    this.clock.set(
      () => {
        if (this.chainedFrom === due) this.look("when it must be chained", "as it is due");
      },
      Math.max(0, due - this.clock.now) + 1,
    );
  }

  private ownerWrote(): void {
    const { now } = this.clock;
    this.ownerWrites = [...this.ownerWrites.filter((at) => at > now - within.contestedFor), now];
    this.expectChain(within.ownerWrite + Math.min(within.contest, 250 * 2 ** (this.ownerWrites.length - 2)));
  }

  start(who: Who, image: Image): void {
    const former = this.pods.get(who);
    if (former !== undefined && !former.process.isDead) return;
    const isSame = former !== undefined && former.stoppedAt === undefined && former.image === image;
    const name = isSame
      ? former.name
      : `${NAMESPACE}-${NAMES[who].slice(0, 4)}${"bcdfghjklmnpqrstvwxz"[this.wasStarted.size]}`;
    if (!isSame && former !== undefined) this.api.pods.delete(former.name);
    this.api.pods.set(name, "there");
    const realm = this.setup.separate ? this.program.separate(WHO.indexOf(who)) : this.program.shared;
    const environment = environmentOf(name);
    const process = new Process(this, {
      name,
      environment,
      files: this.disk.unlimited(() => this.view(name, image)),
      realm,
    });
    this.pods.set(who, { name, image, process });
    const isAlone = this.wasStarted.size === 0 || (isSame && this.wasStarted.size === 1);
    this.wasStarted.add(who);
    this.expectChain(isAlone ? within.start : within.takeOver);
  }

  /** The container's root. */
  private view(name: string, image: Image): Files {
    const view = new Files(this.disk);
    view.makeDirectories(BIN_DIR);
    view.write(`${BIN_DIR}/${OURS}`, PLUGINS[image], 0o755);
    view.makeDirectories(ACCOUNT);
    view.write(`${ACCOUNT}/token`, `token-of-${name}`);
    view.write(`${ACCOUNT}/ca.crt`, "authority");
    view.makeDirectories("/proc/self");
    for (const directory of MOUNTED) view.bind(`${HOST}${directory}`, this.files.inode(directory));
    this.describeMounts(view);
    return view;
  }

  /** A directory that the node has replaced stays mounted. */
  private describeMounts(view: Files): void {
    const line = (directory: string) => {
      const isOld = view.inode(`${HOST}${directory}`) !== this.files.inode(directory);
      return `1 1 8:1 ${directory}${isOld ? "//deleted" : ""} ${HOST}${directory} rw - ext4 /dev/root rw\n`;
    };
    view.write("/proc/self/mountinfo", MOUNTED.map(line).join(""));
  }

  /** Removed, and made again by its owner; the runtime starts again, to watch it. Installers still see the old one. */
  private replaceNetDir(): void {
    const parent = this.files.inode(NET_DIR.slice(0, NET_DIR.lastIndexOf("/")));
    this.disk.unlimited(() => {
      parent.entries.clear();
      this.files.makeDirectories(NET_DIR);
      syncAll(parent);
      this.owner.boot();
      for (const { process } of this.pods.values()) this.describeMounts(process.files);
    });
    this.chained = undefined;
    this.runtime.restart();
    this.expectChain(within.newContainer);
  }

  /** A container ended by itself: the kubelet starts another one. */
  ended(process: Process): void {
    const found = [...this.pods].find(([, pod]) => pod.process === process);
    if (found === undefined) return;
    const [who, { image, stoppedAt }] = found;
    if (stoppedAt !== undefined || this.isUninstalled) return;
    this.say(`${process.name} ended`);
    this.clock.set(() => {
      if (this.pods.get(who)?.process === process && !this.isUninstalled) this.start(who, image);
    }, RESTART_MS);
  }

  private kill(who: Who): void {
    this.pods.get(who)?.process.kill();
  }

  /** The pod is deleted: SIGTERM, and SIGKILL later. */
  stop(who: Who): void {
    const pod = this.pods.get(who);
    if (pod === undefined || pod.process.isDead || pod.stoppedAt !== undefined) return;
    pod.stoppedAt = this.clock.now;
    this.api.pods.set(pod.name, "deleting");
    pod.process.terminate();
    this.expectRemoval();
    this.expectChain(within.takeOver);
    this.clock.set(() => {
      if (!pod.process.isDead) this.look("when a grace period ends", `${GRACE_MS} ms after SIGTERM`);
      pod.process.kill();
    }, GRACE_MS);
  }

  /** A stopping installer removes all once the API server has refused both tokens for some time. */
  private expectRemoval(): void {
    const isRefused = () =>
      this.api.mood === 401 && [...this.pods.values()].some(({ stoppedAt }) => stoppedAt !== undefined);
    if (!isRefused()) return;
    this.clock.set(() => {
      this.mayBeRemoved ||= isRefused();
    }, within.refusalConfirmed);
  }

  private freeze(who: Who, isFrozen: boolean): void {
    const process = this.pods.get(who)?.process;
    if (process === undefined) return;
    process.isFrozen = isFrozen;
    this.expectChain(within.takeOver);
  }

  private changeRuntime(name: ReaderName): void {
    this.chained = undefined;
    const isOther = name !== this.runtime.name;
    this.runtime.restart(name);
    this.api.runtime = READERS[name].version;
    if (!isOther || this.pods.size === 0) return;
    this.runtimeKnownFrom = this.clock.now + within.otherRuntime;
    this.expectChain(within.otherRuntime);
  }

  /** A pod starts, just after the kubelet has asked the installers whether they are ready. */
  private startPod(): void {
    for (const { process } of this.pods.values()) {
      if (process.isDead || process.isFrozen) continue;
      process.probe("/ready", (status) => {
        if (status === 200 && this.isCalm)
          this.look("when a pod starts on a ready node", `a pod starts, ${process.name} is ready`);
      });
    }
  }

  /** Whether the owner and the runtime have been quiet for long enough. */
  private get isCalm(): boolean {
    const { owner, runtime, clock } = this;
    return (
      runtime.isCurrent &&
      this.isRuntimeKnown &&
      !owner.isWriting &&
      !owner.isFighting &&
      clock.now - owner.writtenAt > within.ownerWrite
    );
  }

  /** All is well again, and an installer runs: after the longest time that this may take, the node is chained. */
  private settle(): void {
    this.armed.clear();
    this.rollout?.end();
    Object.assign(this.disk, { isFull: false, isReadOnly: false });
    this.api.mood = "up";
    for (const { process } of this.pods.values()) process.isFrozen = false;
    if (this.working.length === 0) this.start(this.pods.get("A")?.process.isDead === false ? "B" : "A", "one");
    this.expectChain(within.takeOver);
    this.clock.advance(this.chainedFrom - this.clock.now + 2);
  }

  private uninstall(): void {
    this.armed.clear();
    this.rollout?.end();
    const isMounted = ({ process: { files } }: Pod) => files.inode(`${HOST}${NET_DIR}`) === this.files.inode(NET_DIR);
    const couldRemove = this.working.some(isMounted) && this.api.isUp && !this.disk.isFull && !this.disk.isReadOnly;
    this.isUninstalled = true;
    this.api.uninstall();
    for (const { process } of this.pods.values()) process.terminate();
    const pods = [...this.pods.values()];
    const end = this.clock.now + GRACE_MS;
    while (this.clock.now < end && pods.some(({ process }) => !process.isDead)) this.clock.advance(500);
    if (pods.some(({ process }) => !process.isDead)) this.look("when a grace period ends", "after an uninstall");
    this.clock.advance(READ_WITHIN_MS);
    if (couldRemove) this.look("after an uninstall", "after an uninstall");
  }

  private boot(): void {
    this.chained = undefined;
    Object.assign(this.disk, { isFull: false, isReadOnly: false });
    this.disk.version++;
    for (const { process } of this.pods.values()) process.kill();
    const memory = this.files.inode(IN_MEMORY);
    for (const { entries } of memory.entries.values()) entries.clear();
    this.owner.boot();
    this.runtime.restart();
    this.expectChain(within.takeOver);
  }
}

function environmentOf(pod: string): Readonly<Record<string, string>> {
  return {
    CNI_NETWORK_CONFIG: STANZA,
    KUBERNETES_SERVICE_HOST: "10.0.0.1",
    KUBERNETES_SERVICE_PORT: "443",
    POD_NAMESPACE: NAMESPACE,
    POD_NAME: pod,
    POD_UID: `uid-of-${pod}`,
    NODE_NAME: "node",
    HEALTH_PORT: "9990",
  };
}

/** A step as a line for people. */
export function inWords(step: Step): string {
  const place = step.at === undefined ? "" : ` before ${step.at.who}'s ${ordinal(step.at.nth)}${step.at.before}`;
  const { at: _, ...action } = step;
  const [, ...values] = Object.values(action);
  return `${action.do} ${values.join(" ")}`.trim() + place;
}

const ordinal = (nth: number): string => (nth === 1 ? "" : `${nth}. `);
