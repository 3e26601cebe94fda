import { existsSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ENTRIES, type Programs } from "../programs";
import { type Architecture, runtimeVersion } from "../runtime";
import { billOfMaterials, ingredients } from "./sbom";

/** One regular file of the image. */
export interface ImageFile {
  /** Absolute path in the image. */
  readonly path: string;
  /** Path of the file on this machine. */
  readonly source: string;
  readonly mode: number;
}

/** The same for a file that is made for the image. */
export interface MadeFile {
  readonly path: string;
  readonly content: string;
  readonly mode: number;
}

/** A symbolic link of the image. */
export interface ImageLink {
  readonly path: string;
  readonly link: string;
}

/** The GNU C library of one architecture. */
interface Glibc {
  /** The path that executables name as their interpreter. */
  readonly loader: string;
  /** Where it may stand on the machine that builds, and where a loader from there looks for libraries. */
  readonly homes: readonly { readonly onHost: string; readonly inImage: string }[];
  /** Debian's package with it for machines of another architecture. */
  readonly crossPackage: string;
}

/** What the runtime is linked with besides the loader: the NEEDED entries of its ELF header. */
const LIBRARIES = ["libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"];

const GLIBC: Readonly<Record<Architecture, Glibc>> = {
  x64: {
    loader: "/lib64/ld-linux-x86-64.so.2",
    homes: [
      { onHost: "/lib/x86_64-linux-gnu", inImage: "/lib/x86_64-linux-gnu" },
      { onHost: "/usr/x86_64-linux-gnu/lib", inImage: "/lib/x86_64-linux-gnu" },
      { onHost: "/lib64", inImage: "/lib64" },
    ],
    crossPackage: "libc6-amd64-cross",
  },
  arm64: {
    loader: "/lib/ld-linux-aarch64.so.1",
    homes: [
      { onHost: "/lib/aarch64-linux-gnu", inImage: "/lib/aarch64-linux-gnu" },
      { onHost: "/usr/aarch64-linux-gnu/lib", inImage: "/lib/aarch64-linux-gnu" },
      { onHost: "/lib64", inImage: "/lib64" },
    ],
    crossPackage: "libc6-arm64-cross",
  },
};

/** True where this machine has the C library of an architecture. */
export function hasGlibc(architecture: Architecture): boolean {
  return home(architecture) !== undefined;
}

function home(architecture: Architecture) {
  const { homes, loader } = GLIBC[architecture];
  return homes.find(({ onHost }) => existsSync(join(onHost, basename(loader))));
}

/** Where the image has the C library, for the installer to put on nodes. */
const LIBRARY_DIR = "/opt/linkerd-cni/lib";

/** The C library, and links from where executables and the loader look for it. */
async function glibcFiles(architecture: Architecture): Promise<(ImageFile | ImageLink)[]> {
  const { loader, crossPackage } = GLIBC[architecture];
  const found = home(architecture);
  if (found === undefined) {
    throw new Error(`the image for ${architecture} needs its C library: apt-get install ${crossPackage}`);
  }
  const file = async (name: string): Promise<ImageFile> => ({
    path: join(LIBRARY_DIR, name),
    source: await realpath(join(found.onHost, name)),
    mode: 0o755,
  });
  const files = await Promise.all([basename(loader), ...LIBRARIES].map(file));
  const loaderLink = { path: loader, link: join(LIBRARY_DIR, basename(loader)) };
  const libraryLink = { path: found.inImage, link: LIBRARY_DIR };
  return [...files, libraryLink, ...(dirname(loader) === found.inImage ? [] : [loaderLink])];
}

/** Everything the image holds: the runtime with the plugin inside, the scripts it runs, and what it is linked with. */
export async function imageFiles(
  architecture: Architecture,
  programs: Programs,
): Promise<(ImageFile | ImageLink | MadeFile)[]> {
  const glibc = await glibcFiles(architecture);
  const libc = glibc.flatMap((file) => ("source" in file && file.path.endsWith("/libc.so.6") ? [file.source] : []));
  const parts = await ingredients(ENTRIES, await runtimeVersion(architecture), libc[0] ?? "");
  return [
    { path: "/opt/cni/bin/linkerd-cni", source: programs.plugin, mode: 0o755 },
    { path: "/opt/linkerd-cni/installer.js", source: programs.installer, mode: 0o644 },
    { path: "/opt/linkerd-cni/controllers.js", source: programs.controllers, mode: 0o644 },
    { path: "/opt/linkerd-cni/sbom.cdx.json", content: await billOfMaterials(parts), mode: 0o644 },
    ...glibc,
  ];
}
