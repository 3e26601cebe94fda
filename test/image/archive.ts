/** The image's archive as tar unpacks it: what is in it, not what the build says. */
import { execFile } from "node:child_process";
import { mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The image's configuration of its containers. */
interface Config {
  readonly User: string;
  readonly WorkingDir: string;
  readonly Entrypoint: readonly string[];
  readonly Env: readonly string[];
  readonly Labels: Readonly<Record<string, string>>;
}

/** The image for one platform. */
export interface PlatformImage {
  /** `os/architecture` */
  readonly platform: string;
  readonly architecture: string;
  readonly config: Config;
  /** The folder that its layer was unpacked into. */
  readonly root: string;
  /** The layer's entries as `tar --list --verbose` prints them. */
  readonly listing: readonly string[];
  /** Bytes that a node pulls, and bytes that they become. */
  readonly compressed: number;
  readonly uncompressed: number;
}

interface Descriptor {
  readonly digest: string;
  readonly platform: { readonly os: string; readonly architecture: string };
}

/** Unpacks the archive, and the layer of each platform's image, into a directory. */
export async function unpackImage(archive: string, directory: string): Promise<readonly PlatformImage[]> {
  await run("tar", ["-xf", archive, "-C", directory]);
  const blob = ({ digest }: Descriptor) => join(directory, "blobs", digest.replace(":", "/"));
  const json = async (path: string) => JSON.parse(await readFile(path, "utf8"));
  const [named] = (await json(join(directory, "index.json"))).manifests;
  const { manifests } = await json(blob(named));
  return Promise.all(
    manifests.map(async (manifest: Descriptor): Promise<PlatformImage> => {
      const { architecture, os } = manifest.platform;
      const { config, layers } = await json(blob(manifest));
      const layer = blob(layers[0]);
      const root = join(directory, "roots", architecture);
      await mkdir(root, { recursive: true });
      await run("tar", ["--preserve-permissions", "-xzf", layer, "-C", root]);
      const count = `gzip --decompress --stdout ${layer} | wc --bytes`;
      return {
        platform: `${os}/${architecture}`,
        architecture,
        config: (await json(blob(config))).config,
        root,
        listing: (await run("tar", ["-tvzf", layer])).stdout.trim().split("\n"),
        compressed: (await stat(layer)).size,
        uncompressed: Number((await run("sh", ["-c", count])).stdout),
      };
    }),
  );
}
