import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { snapshot } from "../../support/snapshot";

describe("snapshot", () => {
  let directory: string;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "snapshot-"));
  });

  afterEach(() => rm(directory, { recursive: true }));

  it("leaves out a file that is deleted while it reads the directory", async () => {
    await writeFile(join(directory, "stays"), "");
    const stays = (await snapshot(directory)).stays;
    let isDone = false;
    const other = (async () => {
      for (let index = 0; !isDone; index++) {
        await writeFile(join(directory, `${index % 2}`), "");
        await rm(join(directory, `${index % 2}`));
      }
    })();
    try {
      for (let round = 0; round < 300; round++) expect(await snapshot(directory)).toMatchObject({ stays });
    } finally {
      isDone = true;
      await other;
    }
  });
});
