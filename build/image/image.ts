import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { NodePath } from "../../cni/contract";
import { programCommand } from "../../constructs/container";
import { repository } from "../../constructs/version";
import { ARCHITECTURES, type Architecture, hostArchitecture } from "../architecture";
import { cache, outputs, root } from "../paths";
import { buildPlugin } from "../programs";
import { BILL_OF_MATERIALS, imageFiles } from "./contents";
import { type ImageSpec, OCI_NAMES, ociArchive, type PlatformFiles } from "./oci";
import { imageSizes, sizesInWords } from "./size";

/** The image's name if none is given in the chart's values. */
export const IMAGE_NAME = "ghcr.io/linkerd-cni-cdk8s/linkerd-cni";

interface PackageManifest {
  readonly version: string;
  readonly description: string;
  readonly license: string;
}

/** The image's files for an architecture. @param executable for this machine; for another it is compiled */
export async function platformFiles(architecture: Architecture, executable = outputs.plugin): Promise<PlatformFiles> {
  const isHere = architecture === hostArchitecture();
  const path = isHere ? executable : join(cache, "image", architecture, "linkerd-cni");
  if (!isHere) await buildPlugin(path, architecture);
  return { architecture: OCI_NAMES[architecture], files: await imageFiles(path) };
}

/** The image's command and user. */
export async function imageSpec(): Promise<ImageSpec> {
  const about = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as PackageManifest;
  return {
    reference: `${IMAGE_NAME}:${about.version}`,
    entrypoint: programCommand("install"),
    env: [`PATH=${NodePath.binDir}`],
    labels: {
      "org.opencontainers.image.title": "linkerd-cni",
      "org.opencontainers.image.description": about.description,
      "org.opencontainers.image.licenses": about.license,
      "org.opencontainers.image.version": about.version,
      "org.opencontainers.image.vendor": "linkerd-cni-cdk8s",
      "org.opencontainers.image.url": repository,
      "org.opencontainers.image.source": repository,
      "org.opencontainers.image.documentation": `${repository}/blob/main/README.md`,
    },
  };
}

/** Puts the bills of materials beside the archive, for those who look without unpacking. */
async function writeBillsOfMaterials(folder: string, platforms: readonly PlatformFiles[]): Promise<void> {
  for (const { architecture, files } of platforms) {
    const found = files.find(({ name }) => `/${name}` === BILL_OF_MATERIALS);
    if (found !== undefined) await writeFile(join(folder, `sbom-${architecture}.cdx.json`), found.content);
  }
}

/**
 * Makes the image's archive for every architecture, and the bills of materials beside it.
 * @param archive @default dist/image/linkerd-cni.oci.tar
 * @param executable for this machine. @default what the build has made before
 * @returns what was made, in words
 */
export async function buildImage(archive: string = outputs.image, executable = outputs.plugin): Promise<string> {
  const platforms = await Promise.all(ARCHITECTURES.map((architecture) => platformFiles(architecture, executable)));
  await mkdir(dirname(archive), { recursive: true });
  await writeBillsOfMaterials(dirname(archive), platforms);
  await writeFile(`${archive}.part`, await ociArchive(await imageSpec(), platforms, OCI_NAMES[hostArchitecture()]));
  await rename(`${archive}.part`, archive);
  return sizesInWords(await imageSizes(archive));
}
