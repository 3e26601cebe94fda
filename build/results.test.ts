import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { recordResult } from "./results";

test("a measurement is written beside the others, and takes the place of an older one of its kind", async () => {
  const directory = await mkdtemp(join(tmpdir(), "results-"));
  const path = join(directory, "bench", "results.json");
  await recordResult("plugin", { medianMs: 1 }, path);
  await recordResult("image", { MB: 2 }, path);
  await recordResult("plugin", { medianMs: 3 }, path);
  expect(JSON.parse(await readFile(path, "utf8"))).toEqual({ plugin: { medianMs: 3 }, image: { MB: 2 } });
  await rm(directory, { recursive: true });
});
