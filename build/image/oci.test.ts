import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { extract } from "tar-stream";
import { type ImageSpec, ociArchive } from "./oci";

const spec: ImageSpec = {
  reference: "example.org/linkerd-cni:1.2.3",
  entrypoint: ["/bin/it"],
  env: ["A=b"],
  labels: { "org.opencontainers.image.title": "it" },
};
const amd64 = [
  { name: "opt/b/second", mode: 0o755, content: Buffer.from("two") },
  { name: "opt/a/first", content: Buffer.from("one") },
];

const arm64 = [{ name: "opt/b/second", mode: 0o755, content: Buffer.from("zwei") }];
const platforms = [
  { architecture: "amd64", files: amd64 },
  { architecture: "arm64", files: arm64 },
] as const;

interface Entry {
  readonly mode: number | undefined;
  readonly type: string | null | undefined;
  readonly content: Buffer;
}

async function untar(archive: Buffer): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>();
  const reader = extract();
  reader.end(archive);
  for await (const entry of reader) {
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    entries.set(entry.header.name, {
      mode: entry.header.mode,
      type: entry.header.type,
      content: Buffer.concat(chunks),
    });
  }
  return entries;
}

/** The blob that a descriptor names, after its digest and size were compared. */
function blob(entries: Map<string, Entry>, descriptor: { digest: string; size: number }): Buffer {
  const content = entries.get(`blobs/${descriptor.digest.replace(":", "/")}`)?.content ?? Buffer.alloc(0);
  expect(`sha256:${createHash("sha256").update(content).digest("hex")}`).toBe(descriptor.digest);
  expect(content.length).toBe(descriptor.size);
  return content;
}

test("the archive leads from its index to every file by digests that hold", async () => {
  const entries = await untar(await ociArchive(spec, platforms));
  const json = (content: Buffer | undefined) => JSON.parse(content?.toString() ?? "");
  expect(json(entries.get("oci-layout")?.content)).toEqual({ imageLayoutVersion: "1.0.0" });
  const [descriptor] = json(entries.get("index.json")?.content).manifests;
  expect(descriptor).toMatchObject({
    annotations: {
      "io.containerd.image.name": "example.org/linkerd-cni:1.2.3",
      "org.opencontainers.image.ref.name": "1.2.3",
    },
  });
  const { manifests } = json(blob(entries, descriptor));
  expect(manifests.map(({ platform }: { platform: unknown }) => platform)).toEqual([
    { architecture: "amd64", os: "linux" },
    { architecture: "arm64", os: "linux" },
  ]);
  const manifest = json(blob(entries, manifests[0]));
  const config = json(blob(entries, manifest.config));
  expect(config.config).toMatchObject({ User: "0:0", Entrypoint: ["/bin/it"], Env: ["A=b"], Labels: spec.labels });
  const layer = gunzipSync(blob(entries, manifest.layers[0]));
  expect(config.rootfs.diff_ids).toEqual([`sha256:${createHash("sha256").update(layer).digest("hex")}`]);
  const inside = await untar(layer);
  expect([...inside.keys()]).toEqual(["opt", "opt/a", "opt/b", "opt/a/first", "opt/b/second"]);
  expect(inside.get("opt/b/second")).toMatchObject({ mode: 0o755, type: "file", content: Buffer.from("two") });
});

test.each([
  ["the first platform", undefined, ["opt/a/first", "opt/b/second"], "amd64"],
  ["the platform that is asked for", "arm64", ["opt/b/second"], "arm64"],
] as const)("docker's own description leads to %s by the same blobs", async (_, docker, names, architecture) => {
  const entries = await untar(await ociArchive(spec, platforms, docker));
  const images = JSON.parse(entries.get("manifest.json")?.content.toString() ?? "");
  expect(images).toEqual([
    { Config: expect.any(String), RepoTags: ["example.org/linkerd-cni:1.2.3"], Layers: [expect.any(String)] },
  ]);
  const [{ Config, Layers }] = images;
  const config = JSON.parse(entries.get(Config)?.content.toString() ?? "");
  const layer = gunzipSync(entries.get(Layers[0])?.content ?? Buffer.alloc(0));
  expect(config).toMatchObject({ architecture, os: "linux" });
  expect(config.rootfs.diff_ids).toEqual([`sha256:${createHash("sha256").update(layer).digest("hex")}`]);
  const files = [...(await untar(layer))].filter(([, { type }]) => type === "file").map(([name]) => name);
  expect(files).toEqual(names);
});

test("the same files in another order give the same bytes; another byte gives others", async () => {
  const archive = await ociArchive(spec, platforms);
  const of = (files: typeof arm64) => ociArchive(spec, [{ architecture: "amd64", files }, platforms[1]]);
  expect(archive.equals(await of([...(amd64 as typeof arm64)].reverse()))).toBe(true);
  expect(archive.equals(await of([{ name: "opt/a/first", mode: 0o644, content: Buffer.from("One") }]))).toBe(false);
});
