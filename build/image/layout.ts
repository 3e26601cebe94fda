import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type TarEntry, tarArchive, untar } from "./tar";

/** Media types of the OCI image specification. */
export const MEDIA = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
  empty: "application/vnd.oci.empty.v1+json",
} as const;

/** Identifies content by its digest. */
export interface Descriptor {
  readonly mediaType: string;
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string;
  /** In bytes. */
  readonly size: number;
  readonly platform?: { readonly os: string; readonly architecture: string };
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A manifest, or an index of manifests. */
export interface Manifest {
  readonly config?: Descriptor;
  readonly layers?: readonly Descriptor[];
  readonly manifests?: readonly Descriptor[];
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The annotation with the name of an entry of `index.json`. */
export const REF_NAME = "org.opencontainers.image.ref.name";

export const sha256 = (content: Buffer): string => createHash("sha256").update(content).digest("hex");
export const blobPath = ({ digest }: Pick<Descriptor, "digest">): string => `blobs/${digest.replace(":", "/")}`;

/** An OCI image layout in memory: blobs by digest. */
export class Layout {
  private readonly entries: TarEntry[] = [];

  add(mediaType: string, content: Buffer): Descriptor {
    const descriptor = { mediaType, digest: `sha256:${sha256(content)}`, size: content.length };
    this.entries.push({ name: blobPath(descriptor), content });
    return descriptor;
  }

  addJson(mediaType: string, value: unknown): Descriptor {
    return this.add(mediaType, Buffer.from(JSON.stringify(value)));
  }

  /** The layout as a tar archive. @param manifests what `index.json` lists @param others files beside the layout's own */
  archive(manifests: readonly Descriptor[], others: readonly TarEntry[] = []): Promise<Buffer> {
    const index = { schemaVersion: 2, mediaType: MEDIA.index, manifests };
    return tarArchive([
      { name: "oci-layout", content: Buffer.from(JSON.stringify({ imageLayoutVersion: "1.0.0" })) },
      { name: "index.json", content: Buffer.from(JSON.stringify(index)) },
      ...others,
      ...this.entries,
    ]);
  }
}

/** The content of an OCI image layout's archive. */
export interface LayoutContent {
  /** The manifests in `index.json`. */
  readonly manifests: readonly Descriptor[];
  /** Content by digest. */
  readonly blobs: ReadonlyMap<string, Buffer>;
}

/** Reads an archive that {@link Layout.archive} wrote. */
export async function readLayout(path: string): Promise<LayoutContent> {
  const files = await untar(await readFile(path));
  const blobs = [...files].map(([name, content]) => [name.replace(/^blobs\/sha256\//, "sha256:"), content] as const);
  const { manifests } = JSON.parse((files.get("index.json") ?? "{}").toString()) as Manifest;
  return { manifests: manifests ?? [], blobs: new Map(blobs) };
}
