/** The node's container runtime: what it reads of the configuration directory and when, and the pods that it starts. */
import type { Clock, Random } from "./clock";
import { type Event, type Files, type Inode, jsonOf } from "./files";

interface Reader {
  /** As the Node's status names it. */
  readonly version: string;
  /** Changes of the configuration directory after which it reads again. */
  readonly rereads: readonly Event[];
  readonly readsDropins: boolean;
  /** Uses the next file if one cannot be loaded, or a plugin of it is missing. */
  readonly skipsBroken: boolean;
}

export const READERS = {
  "containerd 1.6": {
    version: "containerd://1.6.36",
    rereads: ["write", "moved from", "remove"],
    readsDropins: false,
    skipsBroken: false,
  },
  "containerd 2.1": {
    version: "containerd://2.1.4",
    rereads: ["write", "moved from", "remove"],
    readsDropins: true,
    skipsBroken: false,
  },
  "CRI-O 1.34": {
    version: "cri-o://1.34.0",
    rereads: ["write", "moved from", "create", "moved to"],
    readsDropins: true,
    skipsBroken: true,
  },
} as const satisfies Readonly<Record<string, Reader>>;
export type ReaderName = keyof typeof READERS;

/** The plugins of a chain; undefined if no configuration is loaded. */
export type Chain = readonly string[] | undefined;

export const NET_DIR = "/etc/cni/net.d";
export const BIN_DIR = "/opt/cni/bin";
export const OURS = "linkerd-cni";
/** Plugins of others. */
export const OTHERS = ["bridge", "loopback", "portmap"];

/** Milliseconds from a change until it is read. */
const READ_MS = { least: 1, spread: 40 };
/** By then it has read a change. */
export const READ_WITHIN_MS = 50;
/** Milliseconds that a restart takes. */
const RESTART_MS = 500;

interface Plugin {
  readonly type?: unknown;
}

interface Configuration extends Plugin {
  readonly name?: unknown;
  readonly plugins?: readonly Plugin[];
}

function configuration(files: Files, path: string): Configuration {
  const { kind, bytes } = files.inodeIfAny(path) ?? { kind: "none", bytes: undefined };
  return kind === "file" && bytes !== undefined ? ((jsonOf(bytes) ?? {}) as Configuration) : {};
}

function typesOf(plugins: readonly Plugin[]): Chain {
  const types = plugins.map(({ type }) => type);
  const isType = (type: unknown): type is string => typeof type === "string" && type !== "";
  return types.length > 0 && types.every(isType) ? types : undefined;
}

/** The plugins of a file that runtimes read; undefined if it cannot be loaded. @param opened called with a folder read */
export function pluginsOf(files: Files, name: string, readsDropins: boolean, opened?: (folder: Inode) => void): Chain {
  const config = configuration(files, `${NET_DIR}/${name}`);
  if (!name.endsWith(".conflist")) return typesOf([config]);
  if (typeof config.name !== "string") return undefined;
  const path = `${NET_DIR}/${config.name}`;
  const folder = readsDropins ? files.inodeIfAny(path) : undefined;
  if (folder === undefined) return typesOf(config.plugins ?? []);
  if (folder.kind !== "directory") return undefined;
  opened?.(folder);
  const dropins = filesOf(folder, /\.conf$/);
  return typesOf([...(config.plugins ?? []), ...dropins.map((each) => configuration(files, `${path}/${each}`))]);
}

function filesOf({ entries }: Inode, suffix: RegExp): readonly string[] {
  const names: string[] = [];
  for (const [name, { kind }] of entries) if (kind !== "directory" && suffix.test(name)) names.push(name);
  return names.sort();
}

export const configsIn = (files: Files): readonly string[] => filesOf(files.inode(NET_DIR), /\.(conf|conflist|json)$/);

export class Runtime {
  name: ReaderName = "containerd 1.6";
  private loaded: Chain;
  private watched: Inode | undefined;
  private isReading = false;
  private isDown = false;
  private known: { readonly version: number; readonly name: ReaderName; readonly chain: Chain } | undefined;

  constructor(
    private readonly deps: {
      readonly files: Files;
      readonly clock: Clock;
      readonly random: Random;
      /** Whether an executable of the plugin directory runs. */
      readonly runs: (name: string) => boolean;
    },
  ) {}

  get reader(): Reader {
    return READERS[this.name];
  }

  /** Whether it has read what there is. */
  get isCurrent(): boolean {
    return !this.isDown && !this.isReading;
  }

  /** Starts, perhaps as another version. */
  restart(name: ReaderName = this.name): void {
    this.name = name;
    this.isDown = true;
    this.deps.clock.set(() => {
      this.isDown = false;
      this.read();
    }, RESTART_MS);
  }

  /** The plugins called for a pod that starts now, or undefined if it does not start. */
  startPod(): Chain {
    if (this.isDown || this.loaded === undefined) return undefined;
    return this.loaded.every((type) => this.deps.runs(type)) ? this.loaded : undefined;
  }

  /** The plugins that the configuration in force holds, whether it has been read or not. */
  inForce(): Chain {
    const { version } = this.deps.files.disk;
    if (this.known?.version !== version || this.known.name !== this.name) {
      this.known = { version, name: this.name, chain: this.load() };
    }
    return this.known.chain;
  }

  private read(): void {
    this.watch();
    this.loaded = this.load(({ openings }) => {
      for (const opened of openings) opened();
    });
  }

  private load(opened?: (folder: Inode) => void): Chain {
    const { files, runs } = this.deps;
    for (const name of configsIn(files)) {
      const plugins = pluginsOf(files, name, this.reader.readsDropins, opened);
      if (!this.reader.skipsBroken) return plugins;
      if (plugins?.every(runs)) return plugins;
    }
    return undefined;
  }

  private watch(): void {
    const directory = this.deps.files.inode(NET_DIR);
    if (this.watched === directory) return;
    this.watched?.watches.delete(this.changed);
    this.watched = directory;
    directory.watches.add(this.changed);
  }

  private readonly changed = (event: Event): void => {
    if (this.isDown || this.isReading || !this.reader.rereads.includes(event)) return;
    this.isReading = true;
    const { clock, random } = this.deps;
    clock.set(
      () => {
        this.isReading = false;
        if (!this.isDown) this.read();
      },
      READ_MS.least + random() * READ_MS.spread,
    );
  };
}
