import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { ARCHITECTURES, type Architecture } from "../runtime";
import { OCI_NAMES } from "./oci";
import type { TarEntry } from "./tar";

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

/** The C library where the runtime and its loader look for it. @throws where this machine lacks it */
export async function glibcFiles(architecture: Architecture): Promise<readonly TarEntry[]> {
  const { loader } = GLIBC[architecture];
  const found = home(architecture);
  if (found === undefined) throw new Error(without([architecture]));
  const file = async (name: string, path = join(found.inImage, name)): Promise<TarEntry> => ({
    name: path.slice(1),
    mode: 0o755,
    content: await readFile(join(found.onHost, name)),
  });
  return Promise.all([file(basename(loader), loader), ...LIBRARIES.map((name) => file(name))]);
}
