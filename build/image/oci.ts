import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Architecture } from "../architecture";
import { blobPath, type Descriptor, Layout, MEDIA, REF_NAME, sha256 } from "./layout";
import { type TarEntry, tarArchive } from "./tar";

const compress = promisify(gzip);

/** The configuration of an image. */
export interface ImageSpec {
  /** Full reference, such as `example.org/name:1.0.0`. */
  readonly reference: string;
  readonly entrypoint: readonly string[];
  readonly env: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/** Processors, as OCI names them. */
export const OCI_NAMES = { x64: "amd64", arm64: "arm64" } as const satisfies Record<Architecture, string>;

/** The files for one processor. */
export interface PlatformFiles {
  readonly architecture: (typeof OCI_NAMES)[Architecture];
  readonly files: readonly TarEntry[];
}

/** The only time in the image. */
const EPOCH = new Date(0).toISOString();

/** One platform's image in a layout. */
interface PlatformImage {
  readonly platform: { readonly architecture: PlatformFiles["architecture"]; readonly os: string };
  readonly manifest: Descriptor;
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

/** Adds one platform's image of one layer. */
async function addImage(layout: Layout, spec: ImageSpec, platformFiles: PlatformFiles): Promise<PlatformImage> {
  const { architecture, files } = platformFiles;
  const layer = await tarArchive(files);
  const layers = [layout.add(MEDIA.layer, await compress(layer, { level: 9 }))];
  const platform = { architecture, os: "linux" };
  const config = layout.addJson(MEDIA.config, {
    ...platform,
    created: EPOCH,
    config: {
      User: "0:0",
      WorkingDir: "/",
      Entrypoint: spec.entrypoint,
      Env: spec.env,
      Labels: spec.labels,
    },
    rootfs: { type: "layers", diff_ids: [`sha256:${sha256(layer)}`] },
    history: [{ created: EPOCH, created_by: "npm run build", comment: "FROM scratch" }],
  });
  const manifest = layout.addJson(MEDIA.manifest, {
    schemaVersion: 2,
    mediaType: MEDIA.manifest,
    config,
    layers,
    annotations: spec.labels,
  });
  return { platform, manifest, config, layers };
}

/** The format of `docker save` and `docker load`: one platform, since docker's own store has no more of an image. */
function dockerManifest({ reference }: ImageSpec, image: PlatformImage | undefined) {
  if (image === undefined) return [];
  return [{ Config: blobPath(image.config), RepoTags: [reference], Layers: image.layers.map(blobPath) }];
}

/**
 * Writes an image of one layer for each platform as an OCI archive (a tar of an image layout), which docker takes too.
 * The same input gives the same bytes. An importer that takes no nested index can name the platform's manifest.
 * @param docker the platform that docker finds if its store takes no index. @default the first
 */
export async function ociArchive(
  spec: ImageSpec,
  platforms: readonly PlatformFiles[],
  docker?: PlatformFiles["architecture"],
): Promise<Buffer> {
  const layout = new Layout();
  const images = await Promise.all(platforms.map((platform) => addImage(layout, spec, platform)));
  const forDocker = images.find(({ platform }) => platform.architecture === docker) ?? images[0];
  const image = layout.addJson(MEDIA.index, {
    schemaVersion: 2,
    mediaType: MEDIA.index,
    manifests: images.map(({ manifest, platform }) => ({ ...manifest, platform })),
    annotations: spec.labels,
  });
  const manifestJson = { name: "manifest.json", content: Buffer.from(JSON.stringify(dockerManifest(spec, forDocker))) };
  return layout.archive([{ ...image, annotations: names(spec.reference) }], [manifestJson]);
}

/** Annotations by which importers name an image: the specification's tag, and containerd's full name. */
function names(reference: string): Record<string, string> {
  const tag = reference.slice(reference.lastIndexOf(":") + 1);
  return { "io.containerd.image.name": reference, [REF_NAME]: tag };
}
