import { appendFileSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInstruments } from "./instruments";
import { follow, Tail } from "./plugin-log";

const directory = mkdtempSync(join(tmpdir(), "tail-"));
const path = join(directory, "plugin.log");
afterAll(() => rmSync(directory, { recursive: true }));

test("whole lines that were added, and those of the file that replaces it", () => {
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

test("a rotated file is read completely, however long it is", () => {
  writeFileSync(path, "");
  const tail = new Tail(path);
  const long = "x".repeat(200 * 1024);
  appendFileSync(path, `${long}\n${long}\nlast\npart`);
  renameSync(path, `${path}.1`);
  writeFileSync(path, "new\n");
  expect([tail.lines(), tail.lines(), tail.lines(), tail.lines()]).toEqual([[long], [long, "last"], ["new"], []]);
});

test("a long file is renamed, and no line is lost", () => {
  const log = join(directory, "long.log");
  writeFileSync(log, `${"x".repeat(4 * 1024 * 1024)}\n`);
  const tail = new Tail(log);
  appendFileSync(log, "one\n");
  expect([tail.lines(), tail.lines()]).toEqual([[], ["one"]]);
  // By a call that had opened it before.
  appendFileSync(`${log}.1`, "two\n");
  writeFileSync(log, "three\n");
  expect([tail.lines(), tail.lines()]).toEqual([["two"], ["three"]]);
});

test("a file that may not be read causes no error before it is read", () => {
  const circle = join(directory, "circle");
  symlinkSync("circle", circle);
  const tail = new Tail(circle);
  expect(() => tail.lines()).toThrow("ELOOP");
});

test("earlier lines are returned separately, whole, as far as one read reaches", () => {
  const old = join(directory, "old.log");
  expect(new Tail(old).earlier()).toEqual([]);
  writeFileSync(old, "one\ntwo\npart");
  const tail = new Tail(old);
  expect(tail.earlier()).toEqual(["one", "two"]);
  appendFileSync(old, "\nthree\n");
  expect(tail.lines()).toEqual(["three"]);
  writeFileSync(old, `${"x".repeat(256 * 1024)}\nlast\n`);
  expect(new Tail(old).earlier()).toEqual(["last"]);
});

test("actions of the NRI plugin are shown and passed on, and do not count as calls", () => {
  const shared = join(directory, "shared.log");
  writeFileSync(shared, "");
  const tail = new Tail(shared);
  const entries = [
    { verb: "NRI", pod: "shop/web", decision: "redirect" },
    { verb: "ADD", pod: "shop/cart" },
  ];
  appendFileSync(shared, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  const [instruments, shown, taken] = [createInstruments(), [] as string[], [] as unknown[]];
  const write = (message: string) => void shown.push(message);
  const log = { trace: write, debug: write, info: write, warn: write, error: write };
  follow(tail, { log, isShown: true, instruments, events: { take: (entry) => taken.push(entry) } });
  expect(shown).toEqual(["plugin: verb=NRI pod=shop/web decision=redirect", "plugin: verb=ADD pod=shop/cart"]);
  expect(taken).toEqual(entries);
  expect(instruments.registry.text().match(/^linkerd_cni_plugin_calls_total.*$/gm)).toEqual([
    'linkerd_cni_plugin_calls_total{verb="ADD",decision="",code=""} 1',
  ]);
  appendFileSync(shared, `${JSON.stringify(entries[1])}\n`);
  follow(tail, { log, isShown: false, instruments });
  expect(shown).toHaveLength(2);
  expect(instruments.registry.text()).toContain('linkerd_cni_plugin_calls_total{verb="ADD",decision="",code=""} 2');
});
