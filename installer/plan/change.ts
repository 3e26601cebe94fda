import type { Owner, Seen } from "../state/node-state";

/** What a file is to hold. */
interface Content {
  readonly bytes: Uint8Array;
  readonly mode: number;
  /** @default who runs this */
  readonly owner?: Owner | undefined;
}

/** One planned change of one file. Changes are applied in order, and each is atomic for readers of the file. */
export type Change = Planned & {
  /** Made only while this holds. */
  readonly seen?: Seen;
};

type Planned =
  | ({
      readonly do: "write";
      readonly path: string;
      /** Where it is written before it is renamed. @default beside the path */
      readonly temporary?: string;
    } & Content)
  /** Puts a copy of an executable in place, unless it does not run on this node. */
  | { readonly do: "install"; readonly from: string; readonly path: string; readonly mode: number }
  | ({ readonly do: "keep"; readonly from: string; readonly path: string } & Content)
  | { readonly do: "link"; readonly path: string; readonly target: string }
  | { readonly do: "rename"; readonly from: string; readonly path: string }
  | { readonly do: "mkdir" | "rmdir" | "remove"; readonly path: string }
  /** Has the runtime read its configuration again, by a file that comes and goes. */
  | { readonly do: "reread"; readonly path: string };
