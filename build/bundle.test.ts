import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "./paths";

const tsx = join(root, "node_modules", "tsx", "dist", "cli.mjs");
const source = join(root, "cni", "stanza.ts");

test("a bundle is the same wherever it is built from", async () => {
  const directory = await mkdtemp(join(tmpdir(), "bundle-"));
  const bundles = [root, directory].map(async (cwd, index) => {
    const path = join(directory, `${index}.js`);
    const [entry, outfile, module] = [source, path, join(root, "build", "bundle")].map((name) => JSON.stringify(name));
    await promisify(execFile)(process.execPath, [tsx, "--eval", `require(${module}).bundle(${entry}, ${outfile})`], {
      cwd,
    });
    return readFile(path, "utf8");
  });
  const [here, elsewhere] = await Promise.all(bundles);
  expect(elsewhere).toBe(here);
  await rm(directory, { recursive: true });
});
