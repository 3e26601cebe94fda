import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { outputs, root } from "../paths";
import { type ImageFile, imageFiles } from "./contents";
import { ociArchive } from "./oci";
import type { TarEntry } from "./tar";

/** The image's name where none is given in the chart's values. */
export const IMAGE_NAME = "ghcr.io/linkerd-cni-cdk8s/linkerd-cni";

const ARCHITECTURES: Readonly<Record<string, "amd64" | "arm64">> = { x64: "amd64", arm64: "arm64" };

interface PackageManifest {
  readonly version: string;
  readonly description: string;
  readonly license: string;
}

async function load(file: ImageFile): Promise<TarEntry> {
  return { name: file.path.slice(1), mode: file.mode, content: await readFile(file.source) };
}

/** Makes dist/image/linkerd-cni.oci.tar for this machine's architecture from what the build has made before. */
export async function buildImage(): Promise<void> {
  const architecture = ARCHITECTURES[process.arch];
  if (architecture === undefined) throw new Error(`no image for ${process.arch}: supported are x64 and arm64`);
  const about = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as PackageManifest;
  const files = await Promise.all((await imageFiles()).map(load));
  const archive = await ociArchive(
    {
      reference: `${IMAGE_NAME}:${about.version}`,
      architecture,
      entrypoint: ["/opt/cni/bin/linkerd-cni", "/opt/linkerd-cni/installer.js"],
      // The plugin's executable carries the JavaScript runtime; this variable makes it be that and no plugin.
      env: ["PATH=/opt/cni/bin", "HOME=/tmp", "BUN_BE_BUN=1", "BUN_RUNTIME_TRANSPILER_CACHE_PATH=0"],
      labels: {
        "org.opencontainers.image.title": "linkerd-cni",
        "org.opencontainers.image.description": about.description,
        "org.opencontainers.image.licenses": about.license,
        "org.opencontainers.image.version": about.version,
      },
    },
    files,
  );
  await mkdir(dirname(outputs.image), { recursive: true });
  await writeFile(`${outputs.image}.part`, archive);
  await rename(`${outputs.image}.part`, outputs.image);
}
