import { readFile } from "node:fs/promises";
import { ENTRIES, type Programs } from "../programs";
import { type Architecture, runtimeVersion } from "../runtime";
import { glibcFiles } from "./glibc";
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
  readonly content: string | Uint8Array;
  readonly mode: number;
}

/** A symbolic link of the image. */
export interface ImageLink {
  readonly path: string;
  readonly link: string;
}

/** The bytes of a file of the image. */
export async function contentOf(file: ImageFile | MadeFile): Promise<Buffer> {
  return "content" in file ? Buffer.from(file.content) : readFile(file.source);
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
