import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ImageSpec, ociArchive, type PlatformFiles } from "./oci";
import { recordImageSize } from "./size";

const spec: ImageSpec = { reference: "example.org/it:1", entrypoint: ["/it"], env: [], labels: {} };
const files = [{ name: "it", content: Buffer.alloc(1_000_000) }];
const platforms: readonly PlatformFiles[] = [
  { architecture: "amd64", files },
  { architecture: "arm64", files },
];

let directory: string;
let archive: string;
let results: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "image-size-"));
  [archive, results] = [join(directory, "image.tar"), join(directory, "results.json")];
});
afterEach(() => rm(directory, { recursive: true }));

test("the image's size for each platform is recorded", async () => {
  await writeFile(archive, await ociArchive(spec, platforms));
  await recordImageSize(archive, results);
  const size = { compressedMB: 0, uncompressedMB: 1 };
  expect(JSON.parse(await readFile(results, "utf8"))).toEqual({ image: { "linux/amd64": size, "linux/arm64": size } });
});
