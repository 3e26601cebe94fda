import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { Descriptor, Manifest } from "../image/layout";
import { untar } from "../image/tar";

const decompress = promisify(gunzip);

/** Reads content by its descriptor. */
export type Read = (descriptor: Descriptor) => Promise<Buffer>;

const json = async (read: Read, descriptor: Descriptor) => JSON.parse((await read(descriptor)).toString()) as Manifest;
const platformOf = ({ platform }: Descriptor) => `${platform?.os}/${platform?.architecture}`;

/** The files whose content differs between two archives of the kind that npm and Helm pack, and images have as layers. */
export async function differingFiles(ours: Buffer, theirs: Buffer): Promise<readonly string[]> {
  const [one, other] = await Promise.all([ours, theirs].map(async (archive) => untar(await decompress(archive))));
  const names = new Set([...(one?.keys() ?? []), ...(other?.keys() ?? [])]);
  const differs = (name: string) => {
    const [content, before] = [one?.get(name), other?.get(name)];
    return content === undefined || before === undefined || !content.equals(before);
  };
  const found = [...names].filter(differs).sort();
  // The same files, packed differently.
  return found.length > 0 ? found : ["compression"];
}

/**
 * Names what differs between two artifacts of a registry: platforms, configuration, annotations, files.
 * @param ours its descriptor, and how its content is read
 * @param theirs the same of the other one
 */
export async function difference(
  [ours, readOurs]: readonly [Descriptor, Read],
  [theirs, readTheirs]: readonly [Descriptor, Read],
): Promise<readonly string[]> {
  if (ours.digest === theirs.digest) return [];
  const [one, other] = [await json(readOurs, ours), await json(readTheirs, theirs)];
  const found: string[] = [];
  if (JSON.stringify(one.annotations) !== JSON.stringify(other.annotations)) found.push("annotations");
  if (one.config?.digest !== other.config?.digest) found.push("configuration");
  for (const platform of new Set([...(one.manifests ?? []), ...(other.manifests ?? [])].map(platformOf))) {
    const [mine, its] = [one, other].map(({ manifests }) => manifests?.find((each) => platformOf(each) === platform));
    if (mine === undefined || its === undefined) found.push(`${platform} (only in one of them)`);
    else {
      const inside = await difference([mine, readOurs], [its, readTheirs]);
      found.push(...inside.map((what) => `${platform} ${what}`));
    }
  }
  const [layers = [], before = []] = [one.layers, other.layers];
  for (let index = 0; index < Math.max(layers.length, before.length); index++) {
    const [layer, its] = [layers[index], before[index]];
    if (layer === undefined || its === undefined) found.push("number of layers");
    else if (layer.digest !== its.digest) {
      if (/[+.]gzip$/.test(layer.mediaType) && layer.mediaType === its.mediaType) {
        found.push(...(await differingFiles(await readOurs(layer), await readTheirs(its))));
      } else found.push(layer.annotations?.["org.opencontainers.image.title"] ?? layer.mediaType);
    }
  }
  return found.length > 0 ? found : ["manifest"];
}
