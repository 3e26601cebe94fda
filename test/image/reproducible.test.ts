/** The executable is the same wherever it is built, and needs nothing of the machine that builds it. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { ARCHITECTURES } from "../../build/architecture";
import { cache, root } from "../../build/paths";

jest.setTimeout(1_800_000);

const run = promisify(execFile);

let elsewhere: string;
beforeAll(async () => {
  await mkdir(cache, { recursive: true });
  // Beside this checkout's own cache: hard links do not lead to another file system.
  elsewhere = await mkdtemp(join(cache, "elsewhere-"));
  const parts = [
    "build",
    "host",
    "netlink",
    "plugin",
    "nri",
    "installer",
    "controllers",
    "cni",
    "system",
    "process",
    "kubernetes",
    "constructs",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
  ];
  for (const part of parts) await cp(join(root, part), join(elsewhere, part), { recursive: true });
  await run("cp", ["--archive", "--link", join(root, "node_modules"), elsewhere]);
  await mkdir(join(elsewhere, "bin"));
  await symlink(process.execPath, join(elsewhere, "bin", "node"));
});
afterAll(() => rm(elsewhere, { recursive: true, force: true }));

/** Builds from a checkout, with no compiler on PATH and no home. */
async function digest(checkout: string, architecture: string): Promise<string> {
  const path = join(elsewhere, `${architecture}${checkout === root ? "-here" : ""}`);
  const script = `require("./build/programs").buildPlugin(${JSON.stringify(path)}, ${JSON.stringify(architecture)})`;
  const tsx = join(checkout, "node_modules", "tsx", "dist", "cli.mjs");
  await run(process.execPath, [tsx, "--eval", script], { cwd: checkout, env: { PATH: join(elsewhere, "bin") } });
  return createHash("sha256")
    .update(await readFile(path))
    .digest("hex");
}

it.each(ARCHITECTURES)("from another folder and an empty cache, for %s", async (architecture) => {
  expect(await digest(elsewhere, architecture)).toBe(await digest(root, architecture));
});
