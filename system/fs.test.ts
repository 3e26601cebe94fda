import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fs from "./fs";

let directory: string;
const at = (name: string) => join(directory, name);
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "fs-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const bytes = new Uint8Array([1, 2, 3]);
const codeOf = async (call: () => unknown): Promise<[code: unknown, message: string]> => {
  try {
    await call();
    return [undefined, ""];
  } catch (error) {
    return [(error as { code?: unknown }).code, (error as Error).message];
  }
};

test("a file is created with its mode, whatever the umask, and only if it is not there yet", async () => {
  const former = process.umask(0o077);
  fs.createFileSync(at("new"), bytes, 0o644);
  process.umask(former);
  expect(statSync(at("new")).mode & 0o777).toBe(0o644);
  expect([...readFileSync(at("new"))]).toEqual([1, 2, 3]);
  expect((await codeOf(() => fs.createFileSync(at("new"), bytes, 0o644)))[0]).toBe("EEXIST");
});

test("a file is copied with a mode of its own, and only to where none is", async () => {
  writeFileSync(at("from"), bytes, { mode: 0o600 });
  fs.copyFileSync(at("from"), at("to"), 0o755);
  expect([[...readFileSync(at("to"))], statSync(at("to")).mode & 0o777]).toEqual([[1, 2, 3], 0o755]);
  expect((await codeOf(() => fs.copyFileSync(at("from"), at("to"), 0o755)))[0]).toBe("EEXIST");
});

test("files and directories are made safe on the disk", async () => {
  writeFileSync(at("file"), "");
  fs.settleSync(at("file"));
  fs.settleSync(directory);
  expect((await codeOf(() => fs.settleSync(at("none"))))[0]).toBe("ENOENT");
});

test("files are compared", () => {
  for (const [name, text] of [
    ["one", "ab"],
    ["same", "ab"],
    ["other", "ac"],
    ["longer", "abc"],
  ] as const)
    writeFileSync(at(name), text);
  expect(["one", "same", "other", "longer"].map((name) => fs.isSameSync(at("one"), at(name)))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});
