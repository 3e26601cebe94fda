import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { installerCommand } from "../../constructs/container";
import { repository } from "../../constructs/version";
import { cache, outputs, root } from "../paths";
import { buildNri, buildPlugin, type Programs } from "../programs";
import { type Architecture, hostArchitecture, RUNTIME_ENVIRONMENT } from "../runtime";
import { imageFiles } from "./contents";
import { imageTargets } from "./glibc";
import { type ImageSpec, OCI_NAMES, ociArchive, type PlatformFiles } from "./oci";
import { imageSizes, sizesInWords } from "./size";
import { DEFAULT_MODE, DIRECTORY_MODE, directories } from "./tar";

/** The image's name where none is given in the chart's values. */
export const IMAGE_NAME = "ghcr.io/linkerd-cni-cdk8s/linkerd-cni";

interface PackageManifest {
  readonly version: string;
  readonly description: string;
  readonly license: string;
}

/** The programs for an architecture: those for this machine, and for another with the plugins compiled for it. */
async function programsFor(architecture: Architecture, programs: Programs): Promise<Programs> {
  if (architecture === hostArchitecture()) return programs;
  const compiled = (name: string) => join(cache, "image", architecture, name);
  const [plugin, nri] = [compiled("linkerd-cni"), compiled("linkerd-cni-nri")];
  await buildPlugin(plugin, architecture);
  await buildNri(nri, architecture);
  return { ...programs, plugin, nri };
}

/** The image's files for an architecture. @param programs for this machine; without them those that were built */
export async function platformFiles(architecture: Architecture, programs: Programs = outputs): Promise<PlatformFiles> {
  const files = await imageFiles(architecture, await programsFor(architecture, programs));
  return { architecture: OCI_NAMES[architecture], files };
}

/** What the image runs, and how. */
export async function imageSpec(): Promise<ImageSpec> {
  const about = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as PackageManifest;
  return {
    reference: `${IMAGE_NAME}:${about.version}`,
    entrypoint: installerCommand,
    env: Object.entries({ PATH: "/opt/cni/bin", HOME: "/tmp", ...RUNTIME_ENVIRONMENT }).map(
      ([name, value]) => `${name}=${value}`,
    ),
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

/** Lays the image's files for this machine's architecture out as a folder, for the Containerfile to copy. */
export async function layOutImage(): Promise<void> {
  const folder = join(dirname(outputs.image), "rootfs");
  await rm(folder, { recursive: true, force: true });
  const { files } = await platformFiles(hostArchitecture());
  for (const name of ["", ...directories(files)]) {
    await mkdir(join(folder, name), { recursive: true });
    await chmod(join(folder, name), DIRECTORY_MODE);
  }
  for (const entry of files) {
    const path = join(folder, entry.name);
    await writeFile(path, entry.content);
    await chmod(path, entry.mode ?? DEFAULT_MODE);
  }
}

/** Puts the bills of materials beside the archive, for those who look without unpacking. */
async function writeBillsOfMaterials(folder: string, platforms: readonly PlatformFiles[]): Promise<void> {
  for (const architecture of Object.values(OCI_NAMES)) {
    const path = join(folder, `sbom-${architecture}.cdx.json`);
    const files = platforms.find((platform) => platform.architecture === architecture)?.files ?? [];
    const found = files.find(({ name }) => name.endsWith("sbom.cdx.json"));
    if (found !== undefined) await writeFile(path, found.content);
    else await rm(path, { force: true });
  }
}

/** Where an image is made, and of what. */
export interface ImageOptions {
  /** @default dist/image/linkerd-cni.oci.tar */
  readonly archive?: string;
  /** For this machine. @default what the build has made before */
  readonly programs?: Programs;
  /** Leave out the architectures whose C library is not on this machine, instead of failing. @default false */
  readonly partial?: boolean;
}

/**
 * Makes the image's archive for every architecture, and the bills of materials beside it.
 * @returns what was made, and what was left out, in words
 * @throws where something would have to be left out, unless that was asked for
 */
export async function buildImage(options: ImageOptions = {}): Promise<string> {
  const { archive = outputs.image, programs = outputs, partial = false } = options;
  const { architectures, lacks } = imageTargets();
  if (lacks !== undefined && (!partial || architectures.length === 0)) throw new Error(lacks);
  const platforms = await Promise.all(architectures.map((architecture) => platformFiles(architecture, programs)));
  await mkdir(dirname(archive), { recursive: true });
  await writeBillsOfMaterials(dirname(archive), platforms);
  await writeFile(`${archive}.part`, await ociArchive(await imageSpec(), platforms, OCI_NAMES[hostArchitecture()]));
  await rename(`${archive}.part`, archive);
  const made = sizesInWords(await imageSizes(archive));
  return lacks === undefined ? made : `${made}; incomplete, since ${lacks}`;
}
