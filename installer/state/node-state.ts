import type { ComparedDirectories } from "./directories";
import type { Journal } from "./journal";

/** User and group of a file. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** A file on the node. */
export interface FoundFile {
  readonly name: string;
  /** Absent if it cannot be read; `problem` says why. */
  readonly bytes?: Uint8Array;
  readonly problem?: string;
  readonly mode: number;
  readonly owner?: Owner;
  /** Its target, if it is a symbolic link. */
  readonly target?: string | undefined;
  /** What would make it visible, if it is not visible from here: on the node it may be any configuration. */
  readonly hidden?: string;
  /** Runtimes ignore it. */
  readonly ignored?: true;
}

/** The content of a file at planning; without bytes, the file did not exist. */
export interface Seen {
  readonly path: string;
  readonly bytes?: Uint8Array | undefined;
}

/** One of our directories and its entries. */
export interface Remain {
  readonly path: string;
  readonly isDirectory: boolean;
}

/** The node's state for planning. */
export interface NodeState {
  /** Files that container runtimes read. */
  readonly configs: readonly FoundFile[];
  /** Configurations that Cilium has set aside. */
  readonly setAside: readonly FoundFile[];
  /** Kept originals, by the name of the file that they belong to. */
  readonly originals: ReadonlyMap<string, FoundFile>;
  /**
   * Folders in the configuration directory, by name, with their drop-ins: all drop-ins of a folder named after a list,
   * only ours of other folders.
   */
  readonly dropins: ReadonlyMap<string, readonly FoundFile[]>;
  /** The files of Multus' auxiliary chain; empty for other ways of chaining. */
  readonly auxiliary: readonly FoundFile[];
  /** The files of earlier installers in other auxiliary chains, by their paths here, if they exist. */
  readonly formerAuxiliary: ReadonlyMap<string, FoundFile>;
  /** The same on the node, if their folders are not mounted here. */
  readonly hiddenAuxiliary: readonly string[];
  /** Names of all entries of the configuration directory. */
  readonly names: readonly string[];
  /** Those that are neither directories nor links. */
  readonly notFolders: readonly string[];
  readonly journal?: Journal | undefined;
  /** The journal's file, even if invalid. */
  readonly journalBytes?: Uint8Array | undefined;
  readonly kubeconfig?: FoundFile | undefined;
  /** Paths of the executables that differ from the image's, or are missing. */
  readonly outdated: readonly string[];
  /** The attachments that an uninstall left, followed by their directory. */
  readonly attached: readonly Remain[];
  /** Names of all files in the plugin directory. */
  readonly executables: readonly string[];
  /** Absolute paths of temporary files left by a crash. */
  readonly leftovers: readonly string[];
  readonly directories: ComparedDirectories;
}

/**
 * Suffix with which Cilium (`cni.exclusive`, its default) sets the configurations of others aside. It restores them
 * when it is removed, and makes its own from one of them (`10-aws.conflist`).
 */
export const SET_ASIDE = ".cilium_bak";
