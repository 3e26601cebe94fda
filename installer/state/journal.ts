import { hex, textOf, utf8 } from "../../system/bytes";
import { sha256 } from "../../system/crypto";

/** What the installer must know after a crash and cannot see in the node's files themselves. */
export interface Journal {
  readonly version: 1;
  /** The installer that has the node. */
  readonly owner: string;
  /** It has stopped and left everything in place: the next one that looks has the node. @default false */
  readonly left?: boolean;
  /** Installers that others took the node from, the last one last. They may still run, and do not take it back from one that works. */
  readonly former?: readonly string[];
  /** The one of them from which an older one took the node back: it did not keep the node working. */
  readonly failed?: string;
  /** The owner chains nothing. @default false */
  readonly unchained?: boolean;
  /** Lists made of a single plugin's configuration: the list's file name, and that of the original. */
  readonly made: Readonly<Record<string, string>>;
  /** Lists made of what a link led to: the list's file name, and {@link digest} of what it was made of. */
  readonly links?: Readonly<Record<string, string>>;
  /** Folders in which we have put our drop-in, and whether we made them. */
  readonly folders?: Readonly<Record<string, boolean>>;
}

/** Tells one content from another. */
export const digest = (bytes: Uint8Array): string => hex(sha256(bytes));

const texts = (map: object = {}): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(map).filter(([, value]) => typeof value === "string"));

const flags = (map: object): Readonly<Record<string, boolean>> =>
  Object.fromEntries(Object.entries(map).filter(([, value]) => typeof value === "boolean"));

/** More pods of one DaemonSet do not run on a node at the same time. */
const MOST_FORMER = 8;

/** The journal's note of who has the node once an installer takes it. */
export function takenBy(owner: string, last: Journal | undefined): Pick<Journal, "owner" | "former" | "failed"> {
  const before = (last?.former ?? []).filter((each) => each !== owner);
  // From one that has left, the node is not taken: in its pod another container may go on.
  const taken = last === undefined || last.left === true || last.owner === owner ? [] : [last.owner];
  const former = [...before, ...taken].slice(-MOST_FORMER);
  const [takenBack] = last?.former?.includes(owner) === true ? taken : [];
  const failed = last?.owner === owner ? last.failed : takenBack;
  return { owner, ...(former.length === 0 ? {} : { former }), ...(failed === undefined ? {} : { failed }) };
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
  return utf8(`${JSON.stringify(journal, null, 2)}\n`);
}

/** Undefined if the content is not a journal: then the node's files alone decide. */
export function decodeJournal(bytes: Uint8Array): Journal | undefined {
  try {
    const { version, owner, left, former, failed, unchained, made, links, folders } = JSON.parse(
      textOf(bytes),
    ) as Partial<Journal>;
    if (version !== 1 || typeof owner !== "string") return undefined;
    return {
      version,
      owner,
      ...(left === true ? { left } : {}),
      ...(Array.isArray(former) ? { former: former.filter((each) => typeof each === "string") } : {}),
      ...(typeof failed === "string" ? { failed } : {}),
      ...(unchained === true ? { unchained } : {}),
      made: texts(made),
      ...(links === undefined ? {} : { links: texts(links) }),
      ...(folders === undefined ? {} : { folders: flags(folders) }),
    };
  } catch {
    return undefined;
  }
}
