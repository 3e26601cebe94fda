import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { outputs } from "../paths";
import { RESULTS, recordResult } from "../results";
import { type Manifest, readLayout } from "./layout";

const decompress = promisify(gunzip);

/** The size of the download and of the unpacked files; in 10^6 bytes, to one decimal. */
interface ImageSize {
  readonly compressedMB: number;
  readonly uncompressedMB: number;
}

const megabytes = (bytes: number) => Number((bytes / 1e6).toFixed(1));

/** The sizes of an image's layers in an OCI archive that {@link ociArchive} wrote, by platform. */
export async function imageSizes(archive: string): Promise<Record<string, ImageSize>> {
  const { manifests, blobs } = await readLayout(archive);
  const blob = (name: string) => blobs.get(name) ?? Buffer.alloc(0);
  const json = (name: string) => JSON.parse(blob(name).toString()) as Manifest;
  const sizes: Record<string, ImageSize> = {};
  for (const { digest, platform } of json(manifests[0]?.digest ?? "").manifests ?? []) {
    const { layers = [] } = json(digest);
    const unpacked = await Promise.all(layers.map(async (layer) => (await decompress(blob(layer.digest))).length));
    const sum = (numbers: readonly number[]) => megabytes(numbers.reduce((total, one) => total + one, 0));
    sizes[`${platform?.os}/${platform?.architecture}`] = {
      compressedMB: sum(layers.map(({ size }) => size)),
      uncompressedMB: sum(unpacked),
    };
  }
  return sizes;
}

/** One size after the other, in words. */
export function sizesInWords(sizes: Readonly<Record<string, ImageSize>>): string {
  const words = Object.entries(sizes).map(
    ([platform, { compressedMB, uncompressedMB }]) => `${platform} ${compressedMB} MB (${uncompressedMB} unpacked)`,
  );
  return words.join(", ");
}

/** Adds the size of the built image to the measurements. */
export async function recordImageSize(archive: string = outputs.image, results: string = RESULTS): Promise<void> {
  await recordResult("image", await imageSizes(archive), results);
}
