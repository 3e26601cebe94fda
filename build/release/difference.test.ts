import { gzipSync } from "node:zlib";
import { type Descriptor, Layout, MEDIA, sha256 } from "../image/layout";
import { tarArchive, untar } from "../image/tar";
import { difference, differingFiles, type Read } from "./difference";

const packed = async (files: Readonly<Record<string, string>>) =>
  gzipSync(await tarArchive(Object.entries(files).map(([name, text]) => ({ name, content: Buffer.from(text) }))));

interface Platform {
  readonly files: Readonly<Record<string, string>>;
  readonly config?: string;
}

/** An image for platforms, and how it is read. */
async function image(platforms: Readonly<Record<string, Platform>>): Promise<readonly [Descriptor, Read]> {
  const layout = new Layout();
  const manifests = [];
  for (const [architecture, { files, config = "{}" }] of Object.entries(platforms)) {
    const layers = [layout.add(MEDIA.layer, await packed(files))];
    const manifest = layout.addJson(MEDIA.manifest, { config: layout.add(MEDIA.config, Buffer.from(config)), layers });
    manifests.push({ ...manifest, platform: { os: "linux", architecture } });
  }
  const index = layout.addJson(MEDIA.index, { manifests });
  const files = await untar(await layout.archive([index]));
  return [index, async ({ digest }) => files.get(`blobs/${digest.replace(":", "/")}`) as Buffer];
}

test("names the files that differ, are new or are gone, by platform", async () => {
  const arm64 = { files: { same: "1" } };
  const ours = await image({ amd64: { files: { "opt/a": "1", "opt/b": "2", new: "" } }, arm64 });
  const theirs = await image({ amd64: { files: { "opt/a": "1", "opt/b": "3", old: "" } }, arm64 });
  expect(await difference(ours, theirs)).toEqual(["linux/amd64 new", "linux/amd64 old", "linux/amd64 opt/b"]);
  expect(await difference(ours, ours)).toEqual([]);
});

test("names a platform that only one has, and a configuration", async () => {
  const [amd64, arm64] = [{ files: {} }, { files: {} }];
  const ours = await image({ amd64, arm64 });
  const theirs = await image({ amd64: { ...amd64, config: '{"User":"0"}' } });
  expect(await difference(ours, theirs)).toEqual(["linux/amd64 configuration", "linux/arm64 (only in one of them)"]);
});

test("names a single file by its title, and annotations", async () => {
  const single = (content: string, version: string): readonly [Descriptor, Read] => {
    const file = Buffer.from(content);
    const layer = {
      mediaType: "text/javascript",
      digest: `sha256:${sha256(file)}`,
      annotations: { "org.opencontainers.image.title": "l5d-cni" },
    };
    const manifest = Buffer.from(JSON.stringify({ layers: [layer], annotations: { version } }));
    const digest = `sha256:${sha256(manifest)}`;
    return [
      { mediaType: MEDIA.manifest, digest, size: manifest.length },
      async (wanted) => (wanted.digest === digest ? manifest : file),
    ];
  };
  expect(await difference(single("a", "1"), single("b", "1"))).toEqual(["l5d-cni"]);
  expect(await difference(single("a", "1"), single("a", "2"))).toEqual(["annotations"]);
});

test("archives of the same files differ in their compression", async () => {
  const archive = await tarArchive([{ name: "a", content: Buffer.from("a".repeat(1000)) }]);
  expect(await differingFiles(gzipSync(archive, { level: 1 }), gzipSync(archive, { level: 9 }))).toEqual([
    "compression",
  ]);
});
