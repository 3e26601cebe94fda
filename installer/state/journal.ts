import { textOf, utf8 } from "../../system/bytes";

/**
 * What the installer must know after a crash and cannot derive from the node's files. `folders` serves drop-ins,
 * `auxiliary` Multus; the rest serves every way to chain.
 */
export interface Journal {
  readonly version: 1;
  /** The installer that has the node. */
  readonly owner: string;
  /** It has stopped and left everything in place: the next installer takes the node. @default false */
  readonly left?: boolean | undefined;
  /**
   * Installers that lost the node to others, the latest last. They may still run, and do not take it back from a
   * working one.
   */
  readonly former?: readonly string[] | undefined;
  /** The installer from which an older one took the node back, because it did not keep the node working. */
  readonly failed?: string | undefined;
  /** The installer that has the node does not chain. @default false */
  readonly unchained?: boolean | undefined;
  /** Folders with our drop-in. */
  readonly folders?: readonly string[] | undefined;
  /**
   * Paths on the node of our files in Multus' auxiliary chains, also of those that are removed: Multus ends a pod with
   * the chain that started it.
   */
  readonly auxiliary?: readonly string[] | undefined;
}

const list = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) ? value.filter((each) => typeof each === "string") : undefined;

/** A node does not run more pods of one DaemonSet at the same time. */
const MOST_FORMER = 8;

/** The journal's owner fields after an installer takes the node. */
export function takenBy(owner: string, last: Journal | undefined): Pick<Journal, "owner" | "former" | "failed"> {
  const before = (last?.former ?? []).filter((each) => each !== owner);
  // An installer that has left does not lose the node: another container of its pod may continue.
  const taken = last === undefined || last.left === true || last.owner === owner ? [] : [last.owner];
  const former = [...before, ...taken].slice(-MOST_FORMER);
  const [takenBack] = last?.former?.includes(owner) === true ? taken : [];
  const failed = last?.owner === owner ? last.failed : takenBack;
  return { owner, former: former.length === 0 ? undefined : former, failed };
}

/** Beside the configuration, under a name that runtimes do not read. */
export const JOURNAL_NAME = "linkerd-cni.journal";
const ORIGINAL = ".linkerd-cni-original";

/** Name of the kept original of a file. */
export const originalName = (name: string): string => `${name}${ORIGINAL}`;

/** Name of the file to which an original belongs. */
export function nameOfOriginal(name: string): string | undefined {
  return name.endsWith(ORIGINAL) ? name.slice(0, -ORIGINAL.length) : undefined;
}

export function encodeJournal(journal: Journal): Uint8Array {
  return utf8(`${JSON.stringify(journal, null, 2)}\n`);
}

/** Undefined if the content is not a journal; then only the node's files decide. */
export function decodeJournal(bytes: Uint8Array): Journal | undefined {
  try {
    const { version, owner, left, former, failed, unchained, folders, auxiliary } = JSON.parse(
      textOf(bytes),
    ) as Partial<Journal>;
    if (version !== 1 || typeof owner !== "string") return undefined;
    return {
      version,
      owner,
      left: left === true || undefined,
      former: list(former),
      failed: typeof failed === "string" ? failed : undefined,
      unchained: unchained === true || undefined,
      folders: list(folders),
      auxiliary: list(auxiliary),
    };
  } catch {
    return undefined;
  }
}
