import type { Journal } from "./journal";

/** User and group of a file. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** A file as it lies on the node. */
export interface FoundFile {
  readonly name: string;
  /** Absent if it cannot be read; `problem` says why. */
  readonly bytes?: Uint8Array;
  readonly problem?: string;
  readonly mode: number;
  readonly owner?: Owner;
  /** Its target, if it is a symbolic link. */
  readonly target?: string;
  /** What would show it, if it cannot be seen from here: on the node it may be any configuration. */
  readonly hidden?: string;
  /** No runtime looks at it. */
  readonly ignored?: true;
}

/** What a file held when a change was planned; without bytes: there was none. */
export interface Seen {
  readonly path: string;
  readonly bytes?: Uint8Array | undefined;
}

/** What lies in a directory of ours, and the directory itself. */
export interface Remain {
  readonly path: string;
  readonly isDirectory: boolean;
}

/** Everything on the node that planning depends on. */
export interface NodeState {
  /** Files that container runtimes read. */
  readonly configs: readonly FoundFile[];
  /** Configurations that Cilium has set aside. */
  readonly setAside: readonly FoundFile[];
  /** Originals that are kept, by the name of the file they belong to. */
  readonly originals: ReadonlyMap<string, FoundFile>;
  /**
   * Folders in the configuration directory, by name, with the drop-ins in them: all of a folder that a list is named
   * after, of others only ours.
   */
  readonly dropins: ReadonlyMap<string, readonly FoundFile[]>;
  /** What Multus' auxiliary chain has of us. */
  readonly auxiliary?: FoundFile;
  /** Names of all that lies in the configuration directory. */
  readonly names: readonly string[];
  readonly journal?: Journal;
  /** The journal's file, whatever it holds. */
  readonly journalBytes?: Uint8Array;
  readonly kubeconfig?: FoundFile;
  /** Whether the node's plugin is the image's own, byte for byte. */
  readonly isPluginCurrent: boolean;
  /** The attachments that an uninstall left, and their directory after them. */
  readonly attached: readonly Remain[];
  /** Names of all files in the plugin directory. */
  readonly executables: readonly string[];
  /** Absolute paths of temporary files that a crash left. */
  readonly leftovers: readonly string[];
  /** What is to be noted about the directories. */
  readonly directoriesToNote?: Uint8Array;
}

/**
 * Ending by which Cilium (`cni.exclusive`, its default) sets the configurations of others aside. It puts them back when
 * it is removed, and makes its own of one of them (`10-aws.conflist`).
 */
export const SET_ASIDE = ".cilium_bak";
