import { createReadStream } from "node:fs";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { extract } from "tar-stream";
import { outputs } from "../paths";
import { RESULTS, recordResult } from "../results";
import { OCI_NAMES } from "./oci";

const decompress = promisify(gunzip);

/** What a node pulls, and what that becomes on its disk; in 10^6 bytes, to one decimal. */
export interface ImageSize {
  readonly compressedMB: number;
  readonly uncompressedMB: number;
}

interface Descriptor {
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly os: string; readonly architecture: string };
}

const megabytes = (bytes: number) => Number((bytes / 1e6).toFixed(1));

/** The blobs of an OCI archive, by digest; and its index, as `index.json`. */
async function contentsOf(archive: string): Promise<Map<string, Buffer>> {
  const contents = new Map<string, Buffer>();
  for await (const entry of createReadStream(archive).pipe(extract())) {
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    contents.set(entry.header.name.replace(/^blobs\/sha256\//, "sha256:"), Buffer.concat(chunks));
  }
  return contents;
}

/** The sizes of an image's layers in an OCI archive that {@link ociArchive} wrote, by platform. */
export async function imageSizes(archive: string): Promise<Record<string, ImageSize>> {
  const contents = await contentsOf(archive);
  const blob = (name: string) => contents.get(name) ?? Buffer.alloc(0);
  const json = <T>(name: string) => JSON.parse(blob(name).toString()) as T;
  const [image] = json<{ manifests: Descriptor[] }>("index.json").manifests;
  const sizes: Record<string, ImageSize> = {};
  for (const { digest, platform } of json<{ manifests: Descriptor[] }>(image?.digest ?? "").manifests) {
    const { layers } = json<{ layers: Descriptor[] }>(digest);
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

/**
 * Writes the size of the image that was built among what was measured.
 * @throws where the image is not for every architecture: the others' sizes would be lost
 */
export async function recordImageSize(archive: string = outputs.image, results: string = RESULTS): Promise<void> {
  const sizes = await imageSizes(archive);
  const lacking = Object.values(OCI_NAMES)
    .map((name) => `linux/${name}`)
    .filter((platform) => !(platform in sizes));
  if (lacking.length > 0) throw new Error(`the image is not for ${lacking.join(" and ")}: make it by npm run image`);
  await recordResult("image", sizes, results);
}
