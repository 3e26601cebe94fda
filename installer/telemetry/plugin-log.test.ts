import { appendFileSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Tail } from "./plugin-log";

const directory = mkdtempSync(join(tmpdir(), "tail-"));
const path = join(directory, "plugin.log");
afterAll(() => rmSync(directory, { recursive: true }));

test("whole lines that were added, and those of the file that takes its place", () => {
  writeFileSync(path, "before\n");
  const tail = new Tail(path);
  expect(tail.lines()).toEqual([]);
  appendFileSync(path, "one\ntw");
  expect(tail.lines()).toEqual(["one"]);
  appendFileSync(path, "o\n");
  expect(tail.lines()).toEqual(["two"]);
  renameSync(path, `${path}.1`);
  expect(tail.lines()).toEqual([]);
  writeFileSync(path, "three\n");
  expect(tail.lines()).toEqual(["three"]);
});

test("nothing is lost of a file that is set aside, however much there is", () => {
  writeFileSync(path, "");
  const tail = new Tail(path);
  const long = "x".repeat(200 * 1024);
  appendFileSync(path, `${long}\n${long}\nlast\npart`);
  renameSync(path, `${path}.1`);
  writeFileSync(path, "new\n");
  expect([tail.lines(), tail.lines(), tail.lines(), tail.lines()]).toEqual([[long], [long, "last"], ["new"], []]);
});

test("a file that may not be looked at ends nothing before it is asked for", () => {
  const circle = join(directory, "circle");
  symlinkSync("circle", circle);
  const tail = new Tail(circle);
  expect(() => tail.lines()).toThrow("ELOOP");
});
