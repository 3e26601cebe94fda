/** The content of the image's archive. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseAllDocuments } from "yaml";
import { hostArchitecture } from "../../build/architecture";
import { bundle } from "../../build/bundle";
import { RESOLVED } from "../../build/engine";
import { buildImage } from "../../build/image/image";
import { OCI_NAMES } from "../../build/image/oci";
import { outputs, root } from "../../build/paths";
import { buildPlugin, entries, PRODUCT } from "../../build/programs";
import { RESULTS } from "../../build/results";
import { suite } from "../support/requirements";
import { type PlatformImage, unpackImage } from "./archive";

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
  });
  afterAll(() => rm(work, { recursive: true, force: true }));

  test("is for each architecture", () => {
    expect(images.map(({ platform }) => platform)).toEqual(["linux/amd64", "linux/arm64"]);
  });

  test("contains only one executable, its bill of materials and licences, and no shell", () => {
    const expected = ["licenses/LICENSE", "licenses/NOTICE", "licenses/sbom.cdx.json", "opt/cni/bin/linkerd-cni"];
    for (const { listing } of images) {
      const files = listing.filter((line) => !line.startsWith("d")).map((line) => line.split(" ").at(-1) as string);
      expect(files.sort()).toEqual(expected);
    }
  });

  test("contains the programs of every container in the manifests, and starts as the installer's container", async () => {
    const containers: { readonly name: string; readonly command: readonly string[] }[] = [];
    for (const name of ["linkerd-cni.yaml", "linkerd-multus.yaml"]) {
      const documents = parseAllDocuments(await readFile(join(outputs.manifests, name), "utf8"));
      const objects = documents.map((document) => document.toJS());
      containers.push(...objects.flatMap(({ spec }) => spec?.template?.spec?.containers ?? []));
    }
    expect(containers.map(({ name }) => name)).toEqual(expect.arrayContaining(["install-cni", "operator"]));
    const files = native.listing.map((line) => `/${line.split(" ").at(-1)}`);
    for (const { command } of containers) {
      expect(files).toContain(command[0]);
      expect(Object.keys(PRODUCT.programs)).toContain(command[1]);
    }
    expect(containers.find(({ name }) => name === "install-cni")?.command).toEqual(native.config.Entrypoint);
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
    await buildPlugin(at("linkerd-cni"));
    await buildImage(at("image.tar"), at("linkerd-cni"));
    expect(await sha256(at("image.tar"))).toBe(await sha256(outputs.image));
  });

  test("has labels with description, source and licence", async () => {
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

  describe("the bill of materials", () => {
    const bomOf = ({ root }: PlatformImage) => join(root, "licenses", "sbom.cdx.json");

    test("is the same inside the image and beside its archive", async () => {
      for (const image of images) {
        const beside = join(dirname(outputs.image), `sbom-${image.architecture}.cdx.json`);
        expect(await readFile(bomOf(image), "utf8")).toBe(await readFile(beside, "utf8"));
      }
    });

    test("names what the executable is linked from and every bundled npm package, with version and licence", async () => {
      const packages = await bundledPackages();
      for (const image of images) {
        const expected = [...(await linked()), ...packages];
        const named = await componentsOf(image);
        expect(named).toHaveLength(expected.length);
        expect(named).toEqual(expect.arrayContaining(expected));
      }
    });

    test("is matched by NOTICE: the project's names each component's licence, the image's has its text, too", async () => {
      const ours = await readFile(join(root, "NOTICE"), "utf8");
      for (const image of images) {
        const theirs = await readFile(join(image.root, "licenses", "NOTICE"), "utf8");
        expect(theirs.startsWith(ours)).toBe(true);
        const packages = new Set((await bundledPackages()).map(({ name }) => name));
        for (const { name, version, license } of await componentsOf(image)) {
          const line = new RegExp(`^.*\\(${packages.has(name) ? "npm package " : ""}${name}\\) .*$`, "m");
          expect(line.exec(ours)?.[0]).toContain(license);
          const [, text = ""] = theirs.split(`\n${name} ${version} (${license})\n`);
          expect(text.slice(0, text.search(/^-{80}$/m))).toMatch(/copyright|licen[cs]ed/i);
        }
        expect(theirs).toContain("Fabrice Bellard");
        expect(theirs).toContain("The Mbed TLS Contributors");
        expect(theirs).toContain("Rich Felker");
        expect(theirs).toContain("Zig contributors");
        expect(await sha256(join(image.root, "licenses", "LICENSE"))).toBe(await sha256(join(root, "LICENSE")));
      }
    });

    interface Named {
      readonly name: string;
      readonly version: string;
      readonly license: string;
    }

    async function componentsOf(image: PlatformImage): Promise<readonly Named[]> {
      interface Component extends Omit<Named, "license"> {
        readonly licenses: readonly { readonly license: { readonly id: string } }[];
      }
      const { components } = await json(bomOf(image));
      return components.map(({ name, version, licenses }: Component) => ({
        name,
        version,
        license: licenses.map(({ license }) => license.id).join(),
      }));
    }

    /** Versions as the sources say them that the build compiles. */
    async function linked(): Promise<readonly Named[]> {
      const sources = join(root, "node_modules", "@scriptc", "runtime", "vendor");
      const compiler = join(root, "node_modules", "@oven", `zig-linux-${process.arch}`);
      const defines = async (...path: string[]) => {
        const lines = (await readFile(join(...path), "utf8")).matchAll(/^#define (\w+) +"?([\d.]+)"?$/gm);
        return new Map([...lines].map(([, name, value]) => [name, value]));
      };
      const quickjs = await defines(sources, "quickjs-ng", "quickjs.h");
      const mbedtls = await defines(sources, "mbedtls", "include", "mbedtls", "build_info.h");
      const musl = await defines(compiler, "lib", "libc", "musl", "src", "internal", "version.h");
      const { version: zig } = await json(join(compiler, "package.json"));
      const parts = ["MAJOR", "MINOR", "PATCH"].map((part) => quickjs.get(`QJS_VERSION_${part}`));
      return [
        { name: "quickjs-ng", version: parts.join("."), license: "MIT" },
        { name: "mbedtls", version: mbedtls.get("MBEDTLS_VERSION_STRING") ?? "", license: "Apache-2.0" },
        { name: "musl", version: musl.get("VERSION") ?? "", license: "MIT" },
        { name: "zig-compiler-rt", version: zig, license: "MIT" },
      ];
    }

    /** Packages in the engine's bundles, from the comments of bundles that are not minified. */
    async function bundledPackages(): Promise<readonly Named[]> {
      const folders = new Set<string>();
      for (const [index, entry] of (await entries()).entries()) {
        const path = join(work, `bundle-${index}.js`);
        await bundle(entry, path, { ...RESOLVED, minify: false });
        const text = await readFile(path, "utf8");
        expect(text).toMatch(/^\s*\/\/ cni\/errors\.ts$/m); // modules are named
        const found = text.matchAll(/^\s*\/\/ (node_modules\/(?:.*node_modules\/)?(?:@[^/]+\/)?[^/]+)\//gm);
        for (const [, folder = ""] of found) folders.add(folder);
      }
      return Promise.all(
        [...folders].map(async (folder) => {
          const { name, version, license } = await json(join(root, folder, "package.json"));
          return { name, version, license };
        }),
      );
    }
  });
});
