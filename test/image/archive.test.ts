/** What is in the image's archive, and that the Containerfile makes the same. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { imageTargets } from "../../build/image/glibc";
import { buildImage, layOutImage } from "../../build/image/image";
import { OCI_NAMES } from "../../build/image/oci";
import { outputs, root } from "../../build/paths";
import { buildControllers, buildInstaller, buildPlugin } from "../../build/programs";
import { RESULTS } from "../../build/results";
import { hostArchitecture } from "../../build/runtime";
import { differences, snapshot } from "../../demo/snapshot";
import { suite } from "../support/requirements";
import { type PlatformImage, unpackImage } from "./archive";
import { readContainerfile } from "./containerfile";
import { schemaErrors } from "./cyclonedx";

const json = async (path: string) => JSON.parse(await readFile(path, "utf8"));
const sha256 = async (path: string) =>
  createHash("sha256")
    .update(await readFile(path))
    .digest("hex");

suite("the image's archive", existsSync(outputs.image) ? undefined : "the built image: npm run build", () => {
  let work: string;
  let images: readonly PlatformImage[];
  let native: PlatformImage;

  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), "linkerd-cni-archive-"));
    images = await unpackImage(outputs.image, work);
    native = images.find(({ architecture }) => architecture === OCI_NAMES[hostArchitecture()]) as PlatformImage;
  }, 60_000);
  afterAll(() => rm(work, { recursive: true, force: true }));

  test("is for each architecture whose C library this machine has", () => {
    const platforms = imageTargets().architectures.map((architecture) => `linux/${OCI_NAMES[architecture]}`);
    expect(images.map(({ platform }) => platform)).toEqual(platforms);
  });

  test("holds the programs, what they are linked with, and their bill of materials; no shell, nothing else", () => {
    const scripts = ["controllers.js", "installer.js", "sbom.cdx.json"].map((name) => `opt/linkerd-cni/${name}`);
    const programs = ["opt/cni/bin/linkerd-cni", ...scripts];
    const library = /^opt\/linkerd-cni\/lib\/(ld-linux[-\w.]*|lib(c|m|dl|pthread)\.so\.\d)$/;
    const link = /^lib[-\w./]* -> \/opt\/linkerd-cni\/lib(\/ld-linux[-\w.]*)?$/;
    for (const { listing } of images) {
      const files = listing.filter((line) => line.startsWith("-")).map((line) => line.split(" ").at(-1) as string);
      const links = listing.filter((line) => line.startsWith("l")).map((line) => line.split(" ").slice(-3).join(" "));
      expect(links).toEqual([expect.stringMatching(link), expect.stringMatching(link)]);
      expect(files.filter((path) => !library.test(path)).sort()).toEqual(programs);
      expect(files.filter((path) => library.test(path))).toHaveLength(5);
    }
  });

  test("has only files of root, and none is setuid or writable for all", () => {
    const loose = (line: string) => /^-..[sS]|^-.....[sS]|^[-d].......w/.test(line) || !line.includes(" 0/0 ");
    for (const { listing } of images) expect(listing.filter(loose)).toEqual([]);
  });

  test("is as large as bench/results.json says, within 5 %: a change of the size is a change of that file", async () => {
    const { image } = await json(RESULTS);
    for (const { platform, compressed, uncompressed } of images) {
      expect(Math.abs(compressed / 1e6 / image[platform].compressedMB - 1)).toBeLessThan(0.05);
      expect(Math.abs(uncompressed / 1e6 / image[platform].uncompressedMB - 1)).toBeLessThan(0.05);
    }
  });

  test("is the same, byte for byte, when every part of it is built again in another place", async () => {
    const at = (name: string) => join(work, "again", name);
    const programs = { plugin: at("linkerd-cni"), installer: at("installer.js"), controllers: at("controllers.js") };
    await buildPlugin(programs.plugin);
    await buildInstaller(programs.installer);
    await buildControllers(programs.controllers);
    await buildImage({ archive: at("image.tar"), programs, partial: true });
    expect(await sha256(at("image.tar"))).toBe(await sha256(outputs.image));
  }, 120_000);

  test("says by its labels what it is, where it is from and how it may be used", async () => {
    const { version, description, license } = await json(join(root, "package.json"));
    const project = "https://github.com/linkerd-cni-cdk8s/linkerd-cni";
    const labels = {
      title: "linkerd-cni",
      description,
      version,
      licenses: license,
      vendor: "linkerd-cni-cdk8s",
      url: project,
      source: project,
      documentation: `${project}/blob/main/README.md`,
    };
    const expected = Object.entries(labels).map(([name, value]) => [`org.opencontainers.image.${name}`, value]);
    for (const { config } of images) expect(config.Labels).toEqual(Object.fromEntries(expected));
  });

  test("is what the Containerfile makes: configuration, and every file's content, mode and links", async () => {
    const made = await readContainerfile();
    expect(made).toMatchObject({ base: "scratch", copies: "--from=build /src/dist/image/rootfs/ /" });
    expect(native.config).toEqual(made.config);
    const before = process.umask(0o077);
    await layOutImage().finally(() => process.umask(before));
    const folder = join(dirname(outputs.image), "rootfs");
    expect(differences(await snapshot(native.root), await snapshot(folder))).toEqual([]);
  }, 60_000);

  describe("the bill of materials", () => {
    const bomOf = ({ root }: PlatformImage) => join(root, "opt", "linkerd-cni", "sbom.cdx.json");

    test("is valid, and the same inside the image and beside its archive", async () => {
      for (const image of images) {
        expect(await schemaErrors(await json(bomOf(image)))).toEqual([]);
        const beside = join(dirname(outputs.image), `sbom-${image.architecture}.cdx.json`);
        expect(await readFile(bomOf(image), "utf8")).toBe(await readFile(beside, "utf8"));
      }
    });

    test("names the runtime, the C library and every npm package in the bundles, with version and licence", async () => {
      for (const image of images) {
        const expected = [await runtime(), await glibc(image), ...(await bundledPackages(image))];
        const { components } = await json(bomOf(image));
        const named = components.map(({ name, version, licenses }: Component) => ({
          name,
          version,
          license: licenses.map(({ license }) => license.id).join(),
        }));
        expect(named).toHaveLength(expected.length);
        expect(named).toEqual(expect.arrayContaining(expected));
      }
    });

    interface Component {
      readonly name: string;
      readonly version: string;
      readonly licenses: readonly { readonly license: { readonly id: string } }[];
    }

    async function runtime() {
      const { optionalDependencies } = await json(join(root, "build", "package.json"));
      return { name: "bun", version: optionalDependencies["@oven/bun-linux-x64-baseline"], license: "MIT" };
    }

    async function glibc(image: PlatformImage) {
      const library = await readFile(join(image.root, "opt", "linkerd-cni", "lib", "libc.so.6"), "latin1");
      const version = /release version (\d+\.\d+)/.exec(library)?.[1];
      return { name: "glibc", version, license: "LGPL-2.1-or-later" };
    }

    /** The controllers' bundle names each source in a comment. The other programs have no package besides. */
    async function bundledPackages(image: PlatformImage) {
      const bundle = await readFile(join(image.root, "opt", "linkerd-cni", "controllers.js"), "utf8");
      const folders = [...bundle.matchAll(/^\s*\/\/ (node_modules\/(?:.*node_modules\/)?(?:@[^/]+\/)?[^/]+)\//gm)];
      const packages = [...new Set(folders.map(([, folder = ""]) => folder))];
      expect(packages).toContain("node_modules/zod");
      return Promise.all(
        packages.map(async (folder) => {
          const { name, version, license } = await json(join(root, folder, "package.json"));
          return { name, version, license };
        }),
      );
    }
  });
});
