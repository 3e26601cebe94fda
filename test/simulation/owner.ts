/** The agent that owns the node's network: it writes its configuration as it likes, and it may come back. */
import type { Clock, Random } from "./clock";
import { type Files, sync } from "./files";
import { NET_DIR } from "./runtime";

/** How an agent writes its file. */
interface Agent {
  readonly file: string;
  readonly way: "in place" | "by rename";
  /** Writes its file again at each start of the node. */
  readonly atBoot: boolean;
  /** Milliseconds after which it undoes a change of others; absent: never. */
  readonly undoesAfterMs?: number;
  /** Renames configurations of others, but not directories. */
  readonly isExclusive?: true;
}

export const AGENTS = {
  Calico: { file: "10-calico.conflist", way: "by rename", atBoot: true },
  Cilium: { file: "05-cilium.conflist", way: "by rename", atBoot: true, isExclusive: true },
  Flannel: { file: "10-flannel.conflist", way: "in place", atBoot: true },
  kindnet: { file: "10-kindnet.conflist", way: "in place", atBoot: false, undoesAfterMs: 3_000 },
  "the VPC CNI": { file: "10-aws.conflist", way: "by rename", atBoot: true },
  k3s: { file: "10-flannel.conflist", way: "in place", atBoot: true },
  "a single plugin": { file: "10-bridge.conf", way: "by rename", atBoot: false },
} as const satisfies Readonly<Record<string, Agent>>;
export type AgentName = keyof typeof AGENTS;

/** Milliseconds between the truncation of a file and its content. */
const HALF_WRITTEN_MS = 20;

const textOf = (file: string, version: number): string =>
  file.endsWith(".conflist")
    ? `{"cniVersion":"1.0.0","name":"k","plugins":[\n {"type":"bridge","mtu":${version}},\n {"type":"portmap"}\n]}\n`
    : `{"cniVersion":"1.0.0","name":"k","type":"bridge","mtu":${version}}\n`;

export class Owner {
  readonly agent: Agent;
  /** Of its content; 0: it has removed its file. */
  version = 1;
  writtenAt = 0;
  isWriting = false;
  isFighting = false;

  constructor(
    readonly name: AgentName,
    private readonly deps: { readonly files: Files; readonly clock: Clock; readonly random: Random },
  ) {
    this.agent = AGENTS[name];
    this.finish();
  }

  get path(): string {
    return `${NET_DIR}/${this.agent.file}`;
  }

  /** What it wrote last. */
  get text(): string {
    return textOf(this.agent.file, this.version);
  }

  /** Whether a text holds what it wrote last. */
  isIn(text: string): boolean {
    return text.includes(`"mtu":${this.version}`) || text.includes(`"mtu": ${this.version}`);
  }

  /** Writes new content. */
  write(way: Agent["way"] = this.agent.way): void {
    if (this.isWriting || !this.canWrite) return;
    this.version++;
    this.writtenAt = this.deps.clock.now;
    const { files, clock } = this.deps;
    if (way === "by rename") {
      this.finish();
      return;
    }
    files.write(this.path, "");
    this.isWriting = true;
    clock.set(() => {
      if (!this.isWriting || !this.canWrite) return;
      this.isWriting = false;
      this.writtenAt = clock.now;
      files.write(this.path, this.text);
      this.sync();
    }, HALF_WRITTEN_MS);
  }

  private sync(): void {
    sync(this.deps.files.inode(this.path));
    sync(this.deps.files.inode(NET_DIR));
  }

  private get canWrite(): boolean {
    const { isFull, isReadOnly } = this.deps.files.disk;
    return !isFull && !isReadOnly;
  }

  /** Ends a write at once, by a rename. */
  private finish(): void {
    const { files } = this.deps;
    files.write(`${NET_DIR}/.owner`, this.text);
    files.rename(`${NET_DIR}/.owner`, this.path);
    this.sync();
  }

  /** Starts with the node. */
  boot(): void {
    const isHalfWritten = this.isWriting;
    this.isWriting = false;
    if (isHalfWritten) this.finish();
    if (this.agent.atBoot || !this.deps.files.has(this.path)) this.write();
  }

  /** Undoes the changes of others from now on, for some time. */
  fight(ms: number): void {
    const { files, clock } = this.deps;
    const end = clock.now + ms;
    this.isFighting = true;
    const look = () => {
      if (clock.now >= end) {
        this.isFighting = false;
        return;
      }
      if (!this.isWriting && this.canWrite && files.textIfAny(this.path) !== this.text) {
        this.writtenAt = clock.now;
        this.finish();
      }
      clock.set(look, this.agent.undoesAfterMs ?? 500);
    };
    look();
  }
}
