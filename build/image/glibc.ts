import { existsSync } from "node:fs";
import { readFile, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ARCHITECTURES, type Architecture } from "../runtime";
import type { ImageFile, ImageLink, MadeFile } from "./contents";
import { OCI_NAMES } from "./oci";

/** The GNU C library of one architecture. */
interface Glibc {
  /** The path that executables name as their interpreter. */
  readonly loader: string;
  /** What Debian calls the architecture in the names of directories. */
  readonly triplet: string;
  /** Debian's package with it for machines of another architecture. */
  readonly crossPackage: string;
}

/** What the runtime is linked with besides the loader: the NEEDED entries of its ELF header. */
const LIBRARIES = ["libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"];

const GLIBC: Readonly<Record<Architecture, Glibc>> = {
  x64: {
    loader: "/lib64/ld-linux-x86-64.so.2",
    triplet: "x86_64-linux-gnu",
    crossPackage: "libc6-amd64-cross",
  },
  arm64: {
    loader: "/lib/ld-linux-aarch64.so.1",
    triplet: "aarch64-linux-gnu",
    crossPackage: "libc6-arm64-cross",
  },
};

/** Where it stands on the machine that builds, and where a loader from there looks for libraries. */
function home(architecture: Architecture) {
  const { triplet, loader } = GLIBC[architecture];
  const homes = [
    { onHost: `/lib/${triplet}`, inImage: `/lib/${triplet}` },
    { onHost: `/usr/${triplet}/lib`, inImage: `/lib/${triplet}` },
    { onHost: "/lib64", inImage: "/lib64" },
  ];
  return homes.find(({ onHost }) => existsSync(join(onHost, basename(loader))));
}

/** Says of which architectures this machine has no C library, and how to get it. */
function without(architectures: readonly Architecture[]): string {
  const platforms = architectures.map((architecture) => `linux/${OCI_NAMES[architecture]}`).join(" and ");
  const packages = architectures.map((architecture) => GLIBC[architecture].crossPackage).join(" ");
  return `this machine has no C library for ${platforms}: apt-get install ${packages}`;
}

/** For which architectures an image can be made. */
export interface Targets {
  readonly architectures: readonly Architecture[];
  /** What is lacking for the others, in words; undefined where there are no others. */
  readonly lacks: string | undefined;
}

/** What an image can be made for on this machine. @param has whether it has the C library of an architecture */
export function imageTargets(has = (architecture: Architecture) => home(architecture) !== undefined): Targets {
  const lacking = ARCHITECTURES.filter((architecture) => !has(architecture));
  return {
    architectures: ARCHITECTURES.filter(has),
    lacks: lacking.length === 0 ? undefined : without(lacking),
  };
}

/** Where the image has the C library, for the installer to put on nodes. */
const LIBRARY_DIR = "/opt/linkerd-cni/lib";

const PRELOAD = Buffer.from("\0/etc/ld.so.preload\0");

/**
 * A loader that reads no `/etc/ld.so.preload`: on a node it would find there libraries that are made for the node's own
 * C library, and where one of them needs a newer one than ours, no program starts (rtld.c, `preload_file`). No option
 * nor variable of glibc's leaves that file out, so its name is made empty.
 * @throws where the loader does not have that name exactly once
 */
export function withoutPreload(loader: Uint8Array): Uint8Array {
  const bytes = Buffer.from(loader);
  const at = bytes.indexOf(PRELOAD);
  if (at < 0 || bytes.includes(PRELOAD, at + 1))
    throw new Error("the dynamic loader names /etc/ld.so.preload not exactly once");
  bytes[at + 1] = 0;
  return bytes;
}

/** The C library, and links from where executables and the loader look for it. @throws where this machine lacks it */
export async function glibcFiles(architecture: Architecture): Promise<(ImageFile | ImageLink | MadeFile)[]> {
  const { loader } = GLIBC[architecture];
  const found = home(architecture);
  if (found === undefined) throw new Error(without([architecture]));
  const file = async (name: string): Promise<ImageFile> => ({
    path: join(LIBRARY_DIR, name),
    source: await realpath(join(found.onHost, name)),
    mode: 0o755,
  });
  const files = await Promise.all(LIBRARIES.map(file));
  const { source, ...made } = await file(basename(loader));
  const lonely = { ...made, content: withoutPreload(await readFile(source)) };
  const loaderLink = { path: loader, link: made.path };
  const libraryLink = { path: found.inImage, link: LIBRARY_DIR };
  return [lonely, ...files, libraryLink, ...(dirname(loader) === found.inImage ? [] : [loaderLink])];
}
