import { cp, mkdir, mkdtemp, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { version } from "../../constructs";
import { Layout, type Manifest, MEDIA, REF_NAME, readLayout } from "../image/layout";
import { tarArchive, untar } from "../image/tar";
import { outputs } from "../paths";
import { type Artifact, artifacts, chartArtifact, cliArtifact, imageArtifact } from "./artifacts";

let work: string;
beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), "release-"));
});
afterEach(() => rm(work, { recursive: true, force: true }));

const chart = join(outputs.charts, "linkerd2-cni");
const blobOf = async ({ archive }: Artifact, digest = "") => (await readLayout(archive)).blobs.get(digest) as Buffer;
const layersOf = async (artifact: Artifact) =>
  (JSON.parse(String(await blobOf(artifact, artifact.digest))) as Manifest).layers ?? [];

/** Writes an archive of an image for these platforms, each of one layer. */
async function image(architectures: readonly string[], tag: string): Promise<string> {
  const layout = new Layout();
  const sbom = { name: "licenses/sbom.cdx.json", content: Buffer.from("{}") };
  const layer = layout.add(MEDIA.layer, gzipSync(await tarArchive([sbom])));
  const manifests = architectures.map((architecture) => {
    const config = layout.addJson(MEDIA.config, { architecture });
    return { ...layout.addJson(MEDIA.manifest, { config, layers: [layer] }), platform: { os: "linux", architecture } };
  });
  const path = join(work, "image.tar");
  const index = { ...layout.addJson(MEDIA.index, { manifests }), annotations: { [REF_NAME]: tag } };
  await writeFile(path, await layout.archive([index]));
  return path;
}

test("a chart is the same artifact whatever the times of its files are, and holds each file below its name", async () => {
  const first = await chartArtifact(chart, version, work);
  const copy = join(work, "linkerd2-cni");
  await cp(chart, copy, { recursive: true });
  await utimes(join(copy, "values.yaml"), 1, 1);
  expect((await chartArtifact(copy, version, work)).digest).toBe(first.digest);
  const [layer] = await layersOf(first);
  const files = await untar(gunzipSync(await blobOf(first, layer?.digest)));
  expect(files.get("linkerd2-cni/values.yaml")).toEqual(await readFile(join(chart, "values.yaml")));
  expect([...files.keys()].every((name) => name.startsWith("linkerd2-cni/"))).toBe(true);
});

test("a chart of another version is refused, with the way to make it", async () => {
  await expect(chartArtifact(chart, "9.9.9", work)).rejects.toThrow(
    /linkerd2-cni\/Chart\.yaml: version is .*, package\.json's is 9\.9\.9: run npm run build -- charts/,
  );
});

test("an image must be for each architecture, and of the version", async () => {
  const digests = (await imageArtifact(await image(["amd64", "arm64"], "1.0.0"), "1.0.0")).platforms;
  expect(digests?.map(({ platform }) => platform)).toEqual(["linux/amd64", "linux/arm64"]);
  await expect(imageArtifact(await image(["amd64"], "1.0.0"), "1.0.0")).rejects.toThrow(
    /not for linux\/arm64: run npm/,
  );
  await expect(imageArtifact(await image(["amd64", "arm64"], "1.0.0"), "2.0.0")).rejects.toThrow(
    /is of version 1\.0\.0, package\.json of 2\.0\.0: run npm run image/,
  );
});

test("the command line keeps its name, by which oras writes it", async () => {
  await writeFile(join(work, "l5d-cni"), "#!/usr/bin/env node\n");
  await expect(cliArtifact(join(work, "l5d-cni"), version, work)).rejects.toThrow(/l5d-cni\.cdx\.json cannot be read/);
  await writeFile(join(work, "l5d-cni.cdx.json"), "{}");
  const [layer] = await layersOf(await cliArtifact(join(work, "l5d-cni"), version, work));
  expect(layer).toMatchObject({ annotations: { "org.opencontainers.image.title": "l5d-cni" } });
});

test("everything that is not built is named at once", async () => {
  await mkdir(join(work, "charts", "linkerd2-cni"), { recursive: true });
  const sources = { image: join(work, "none.tar"), charts: join(work, "charts"), cli: join(work, "l5d-cni") };
  const problems = await artifacts(sources, version, work).catch((error: Error) => error.message.split("\n"));
  expect(problems).toEqual([
    `${sources.image} cannot be read (ENOENT): run npm run image`,
    `${sources.charts}/linkerd2-cni/Chart.yaml cannot be read (ENOENT): run npm run build -- charts`,
    `${sources.cli} cannot be read (ENOENT): run npm run build -- cli`,
  ]);
});
