import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
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

test("what is done apart gives what it returns, or throws", async () => {
  expect(await fs.apart(() => ({ value: 1 }))).toEqual({ value: 1 });
  expect(await codeOf(() => fs.apart(() => fs.unlinkSync(at("none"))))).toEqual([
    "ENOENT",
    expect.stringMatching(/^ENOENT/),
  ]);
});

const failures: readonly (readonly [string, string, () => unknown])[] = [
  ["statSync", "ENOENT", () => fs.statSync(at("none"))],
  ["statSync, of a circle", "ELOOP", () => fs.statSync(at("circle"), { throwIfNoEntry: false })],
  ["statSync, through a file", "ENOTDIR", () => fs.statSync(at("file/none"))],
  ["readFileSync", "ENOENT", () => fs.readFileSync(at("none"))],
  ["readFileSync, of a directory", "EISDIR", () => fs.readFileSync(directory, "utf8")],
  ["readdirSync", "ENOTDIR", () => fs.readdirSync(at("file"))],
  ["readlinkSync", "EINVAL", () => fs.readlinkSync(at("file"))],
  ["accessSync", "ENOENT", () => fs.accessSync(at("none"), fs.constants.W_OK)],
  ["accessSync, to execute", "EACCES", () => fs.accessSync(at("file"), fs.constants.X_OK)],
  ["openSync", "ENOENT", () => fs.openSync(at("none"), "r")],
  ["realpathSync", "ENOENT", () => fs.realpathSync(at("none"))],
  ["watch", "ENOENT", () => fs.watch(at("none"), () => undefined)],
  ["linkSync", "EEXIST", () => fs.linkSync(at("file"), at("other"))],
  ["symlinkSync", "EEXIST", () => fs.symlinkSync("x", at("file"))],
  ["renameSync", "ENOENT", () => fs.renameSync(at("none"), at("x"))],
  ["unlinkSync", "ENOENT", () => fs.unlinkSync(at("none"))],
  ["mkdirSync", "EEXIST", () => fs.mkdirSync(directory, 0o700)],
  ["rmdirSync", "ENOTEMPTY", () => fs.rmdirSync(directory)],
  ["chownSync", "ENOENT", () => fs.chownSync(at("none"), 0, 0)],
];

test.each(failures)("%s fails with %s in code and message", async (_, code, call) => {
  for (const name of ["file", "other"]) writeFileSync(at(name), "");
  symlinkSync("circle", at("circle"));
  const [found, message] = await codeOf(call);
  expect([found, message.split(":")[0]]).toEqual([code, code]);
});

test("what is not there is told without an error where that is asked for", () => {
  expect(fs.statSync(at("none"), { throwIfNoEntry: false })).toBeUndefined();
  expect(fs.lstatSync(at("none"), { throwIfNoEntry: false })).toBeUndefined();
  expect([fs.existsSync(at("none")), fs.existsSync(directory)]).toEqual([false, true]);
});

test("entries tell what they are", () => {
  mkdirSync(at("directory"));
  writeFileSync(at("file"), "");
  symlinkSync("directory", at("link"));
  const entries = fs.readdirSync(directory, { withFileTypes: true });
  const kinds = entries.map((entry) => [entry.name, entry.isDirectory(), entry.isSymbolicLink()]);
  expect(kinds.sort()).toEqual([
    ["directory", true, false],
    ["file", false, false],
    ["link", false, true],
  ]);
  expect(fs.lstatSync(at("link")).isSymbolicLink()).toBe(true);
  expect(fs.statSync(at("link")).isDirectory()).toBe(true);
});

test("a watch tells of a file that is written", async () => {
  let told: () => void = () => undefined;
  const change = new Promise<void>((resolve) => {
    told = resolve;
  });
  const watch = fs.watch(directory, () => told());
  writeFileSync(at("new"), "");
  await change;
  watch.close();
});
