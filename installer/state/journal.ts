import { createHash } from "node:crypto";

/** What the installer must know after a crash and cannot see in the node's files themselves. */
export interface Journal {
  readonly version: 1;
  /** The installer that installed last; an older one that stops later leaves its work alone. */
  readonly owner: string;
  /** It has stopped and left what it installed in place: an older one that still runs goes on. @default false */
  readonly left?: boolean;
  /** Lists made of a single plugin's configuration: the list's file name, and that of the original. */
  readonly made: Readonly<Record<string, string>>;
  /** Lists made of what a link led to: the list's file name, and {@link digest} of what it was made of. */
  readonly links?: Readonly<Record<string, string>>;
  /** The plugin directory, as a path on the node. A changed one is noted only once the plugin and the chain are in place. */
  readonly binDir?: string;
  /** The same directory itself: links may give it several paths. */
  readonly binDirId?: string;
}

/** Tells one content from another. */
export const digest = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

const texts = (map: object = {}): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(map).filter(([, value]) => typeof value === "string"));

/** An installer's name among all that a node has and had. */
export const ownerName = (identity: string, since: Date, processId: number): string =>
  `${identity} since ${since.toISOString()} (process ${processId})`;

const startOf = (owner: string): string | undefined => / since (\S+Z) \(process \d+\)$/.exec(owner)?.[1];

/** Whether an installer started before another, by the node's clock; false where a name does not tell. */
export function isEarlier(owner: string, than: string): boolean {
  const [start, other] = [startOf(owner), startOf(than)];
  return start !== undefined && other !== undefined && start < other;
}

/** Beside the configuration, under a name that no runtime reads. */
export const JOURNAL_NAME = "linkerd-cni.journal";
const ORIGINAL = ".linkerd-cni-original";

/** Name under which a file's original is kept beside it. */
export const originalName = (name: string): string => `${name}${ORIGINAL}`;

/** Name of the file that this is the original of. */
export function nameOfOriginal(name: string): string | undefined {
  return name.endsWith(ORIGINAL) ? name.slice(0, -ORIGINAL.length) : undefined;
}

export function encodeJournal(journal: Journal): Uint8Array {
  return Buffer.from(`${JSON.stringify(journal, null, 2)}\n`);
}

/** Undefined where the content is no journal: then the node's files alone tell what there is to do. */
export function decodeJournal(bytes: Uint8Array): Journal | undefined {
  try {
    const { version, owner, left, made, links, binDir, binDirId } = JSON.parse(
      Buffer.from(bytes).toString("utf8"),
    ) as Partial<Journal>;
    if (version !== 1 || typeof owner !== "string") return undefined;
    return {
      version,
      owner,
      ...(left === true ? { left } : {}),
      made: texts(made),
      ...(links === undefined ? {} : { links: texts(links) }),
      ...(typeof binDir === "string" ? { binDir } : {}),
      ...(typeof binDirId === "string" ? { binDirId } : {}),
    };
  } catch {
    return undefined;
  }
}
