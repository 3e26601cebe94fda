import type { Owner, Seen } from "../state/node-state";

/** The wanted content of a file. */
interface Content {
  readonly bytes: Uint8Array;
  readonly mode: number;
  /** @default who runs this */
  readonly owner?: Owner | undefined;
}

/** One planned change of a file. Changes are applied in order, and each is atomic for readers. */
export type Change = Planned & {
  /** Applied only while this holds. */
  readonly seen?: Seen;
};

type Planned =
  | ({
      readonly do: "write";
      readonly path: string;
    } & Content)
  /** Gives the copy of the image's plugin, which has run beside it, its name. */
  | { readonly do: "install"; readonly image: string; readonly path: string }
  | ({ readonly do: "keep"; readonly from: string; readonly path: string } & Content)
  | { readonly do: "link"; readonly path: string; readonly target: string }
  /** Renames an owner's file to the name of its kept original. */
  | { readonly do: "aside"; readonly from: string; readonly path: string }
  /** Gives a kept original its owner's name. */
  | { readonly do: "restore"; readonly from: string; readonly path: string; readonly bytes: Uint8Array }
  | { readonly do: "mkdir" | "rmdir" | "remove"; readonly path: string }
  /** Makes the runtime read its configuration again, by creating and removing a file. */
  | { readonly do: "reread"; readonly path: string };
