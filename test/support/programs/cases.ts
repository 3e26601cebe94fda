/** Uses of system/ and the usual globals: they give the same results under Node and on the engine. */

import {
  accessSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  renameSync,
  rmdirSync,
  type Stats,
  statfsSync,
  statSync,
  symlinkSync,
  unlinkSync,
  watch,
} from "node:fs";
import { base64, fromBase64 } from "../../../host/base64";
import { run } from "../../../system/child";
import { copyFileSync, createFileSync, settleSync } from "../../../system/fs";

type Case = (directory: string) => unknown;

/** The result of `work`, or the code of its error and the beginning of its message. */
async function told(work: () => unknown): Promise<unknown> {
  try {
    return (await work()) ?? "done";
  } catch (error) {
    const { code, message } = error as Error & { readonly code?: string };
    return { code, message: message.split(",")[0] };
  }
}

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (of: Uint8Array) => new TextDecoder().decode(of);

const ended = async (script: string, options: object = {}) => {
  const usual = { env: { NAME: "value" }, cwd: "/", timeoutMs: 20_000, maxBytes: 100_000 };
  return run("/bin/sh", ["-c", script], { ...usual, ...options });
};

const TEXTS: readonly (readonly number[])[] = [
  [0xe2, 0x82, 0xac],
  [0xf0, 0x9f, 0x98, 0x80],
  [0xef, 0xbb, 0xbf, 0x41, 0xef, 0xbb, 0xbf],
  [0x41, 0xff, 0x42],
  [0xe2, 0x82],
  [0xe2, 0x28, 0xa1],
  [0xef, 0xbf, 0xbd],
  [0xed, 0xa0, 0x80],
];

export const cases: Readonly<Record<string, Case>> = {
  base64: () => {
    const given = ["", "QQ==", "QQ", " QUJ\nD ", "/+8=", "A", "AA=", "====", "AA-_", "Ä===", "AA\0="];
    const made = [0, 1, 2, 3, 256].map((size) => base64(Uint8Array.from({ length: size }, (_, at) => at)));
    return Promise.all([...given.map((text) => told(() => Array.from(fromBase64(text)))), ...made]);
  },
  async makesFiles(directory) {
    const path = (name: string) => `${directory}/${name}`;
    const results = [
      await told(() => mkdirSync(path("made"), 0o700)),
      await told(() => mkdirSync(path("made"), 0o700)),
      await told(() => createFileSync(path("made/file"), bytes("grüße\n"), 0o4755)),
      await told(() => createFileSync(path("made/file"), bytes("other"), 0o644)),
      await told(() => createFileSync(path("none/file"), bytes("other"), 0o644)),
      await told(() => copyFileSync(path("made/file"), path("made/copy"), 0o600)),
      await told(() => copyFileSync(path("made/file"), path("made/copy"), 0o600)),
      await told(() => copyFileSync(path("made/none"), path("made/copy2"), 0o600)),
      await told(() => linkSync(path("made/file"), path("made/second"))),
      await told(() => linkSync(path("made/none"), path("made/third"))),
      await told(() => symlinkSync("second", path("made/link"))),
      await told(() => symlinkSync("nowhere", path("made/dangling"))),
      await told(() => renameSync(path("made/copy"), path("made/renamed"))),
      await told(() => renameSync(path("made/copy"), path("made/renamed"))),
      await told(() => chownSync(path("made/none"), 0, 0)),
      await told(() => settleSync(path("made"))),
      await told(() => settleSync(path("made/file"))),
      await told(() => settleSync(path("made/none"))),
      await told(() => rmdirSync(path("made"))),
      await told(() => unlinkSync(path("made"))),
      await told(() => createFileSync(path("made/gone"), new Uint8Array(300_000), 0o640)),
      statSync(path("made/gone")).size,
      await told(() => unlinkSync(path("made/gone"))),
      await told(() => unlinkSync(path("made/gone"))),
    ];
    return results;
  },
  async looksAtFiles(directory) {
    const path = (name: string) => `${directory}/${name}`;
    mkdirSync(path("seen"), 0o750);
    createFileSync(path("seen/ö file"), bytes("\ufeffgrüße\n"), 0o644);
    symlinkSync("ö file", path("seen/link"));
    symlinkSync("loop", path("seen/loop"));
    symlinkSync("nowhere", path("seen/dangling"));
    for (const name of ["b", "a", "10", "9", "Z"]) createFileSync(path(`seen/${name}`), bytes(name), 0o600);
    const shown = (stats: Stats | undefined) =>
      stats && {
        ...{ mode: stats.mode, uid: stats.uid, gid: stats.gid, size: stats.size },
        kinds: [stats.isFile(), stats.isDirectory(), stats.isSymbolicLink()],
      };
    const file = path("seen/ö file");
    const descriptor = openSync(file, "r");
    const into = new Uint8Array(16);
    const read = [
      readSync(descriptor, into, 2, 4, null),
      readSync(descriptor, into, 6, 2, 0),
      readSync(descriptor, into, 8, 8, null),
      readSync(descriptor, into, 0, 8, 100),
    ];
    closeSync(descriptor);
    const [one, same, other] = [statSync(file), lstatSync(file), statSync(path("seen/a"))];
    return [
      shown(one),
      shown(statSync(path("seen/link"))),
      shown(lstatSync(path("seen/link"))),
      shown(lstatSync(path("seen/dangling"))),
      shown(statSync(path("seen"))),
      [one.ino === same.ino, one.ino === other.ino, one.dev === other.dev, one.dev],
      [one.mtimeMs === same.mtimeMs, one.ctimeMs > 1.7e12, one.mtimeMs > 1.7e12],
      await told(() => statSync(path("seen/none"), { throwIfNoEntry: false })),
      await told(() => statSync(`${file}/none`, { throwIfNoEntry: false })),
      await told(() => statSync(path("seen/none"))),
      await told(() => statSync(path("seen/loop"), { throwIfNoEntry: false })),
      readFileSync(file, "utf8"),
      text(readFileSync(file)),
      readFileSync("/proc/self/mountinfo", "utf8").length > 0,
      await told(() => readFileSync(path("seen"))),
      await told(() => readFileSync(path("seen/none"), "utf8")),
      read,
      [...into],
      await told(() => openSync(path("seen/none"), "r")),
      await told(() => closeSync(999)),
      readdirSync(path("seen")),
      readdirSync(path("seen"), { withFileTypes: true }).map((each) => [
        each.name,
        each.isDirectory(),
        each.isSymbolicLink(),
      ]),
      readdirSync(directory, { withFileTypes: true }).map((each) => [each.name, each.isDirectory()]),
      await told(() => readdirSync(file)),
      await told(() => readdirSync(path("seen/none"))),
      readlinkSync(path("seen/link")),
      await told(() => readlinkSync(file)),
      realpathSync(path("seen/link")) === realpathSync(file),
      await told(() => realpathSync(path("seen/dangling"))),
      ["seen", "seen/none", "seen/dangling", "seen/link"].map((name) => existsSync(path(name))),
      await told(() => accessSync(file, constants.W_OK)),
      await told(() => accessSync(file, constants.X_OK)),
      await told(() => accessSync(path("seen/none"), constants.W_OK)),
      statfsSync(directory).bsize,
      statfsSync(directory).bavail > 0,
      await told(() => statfsSync(path("seen/none"))),
    ];
  },
  async manyFiles(directory) {
    const names = Array.from({ length: 300 }, (_, at) => `${"name ".repeat(40)}${at}`);
    createFileSync(`${directory}/first`, bytes("x"), 0o600);
    for (const name of names) linkSync(`${directory}/first`, `${directory}/${name}`);
    return readdirSync(directory);
  },
  async watches(directory) {
    const results: unknown[] = [await told(() => watch(`${directory}/none`, () => undefined))];
    let changed: () => void = () => undefined;
    const watched = watch(directory, () => changed());
    const other = watch(directory, () => undefined);
    for (const change of [
      () => createFileSync(`${directory}/one`, bytes("1"), 0o600),
      () => renameSync(`${directory}/one`, `${directory}/two`),
      () => unlinkSync(`${directory}/two`),
    ]) {
      const seen = new Promise<void>((resolve) => {
        changed = resolve;
      });
      await change();
      await seen;
      results.push("seen");
    }
    other.close();
    watched.close();
    watched.close();
    return results;
  },
  runsPrograms: async () => [
    await ended("echo out; echo error >&2; echo $NAME$OTHER; pwd; exit 7", { cwd: "/tmp" }),
    await ended("cat; echo end"),
    await ended("kill -SEGV $$"),
    await ended("kill -KILL $$"),
    await run("/nonexistent", [], { env: {}, cwd: "/", timeoutMs: 20_000, maxBytes: 10 }),
    await run("/etc/passwd", [], { env: {}, cwd: "/", timeoutMs: 20_000, maxBytes: 10 }),
    await run("/bin/sh", ["-c", ":"], { env: {}, cwd: "/nonexistent", timeoutMs: 20_000, maxBytes: 10 }),
    { ...(await ended("echo begun; exec sleep 1000", { timeoutMs: 300 })), stdout: "" },
    { ...(await ended("exec yes", { maxBytes: 1000 })), stdout: "" },
    await Promise.all(Array.from({ length: 5 }, (_, at) => ended(`sleep 0.1; echo ${at}`))),
  ],
  texts: () => [
    ["", "grüße €😀", "a\0b", "\ud800a\udc00"].map((each) => [...bytes(each)]),
    ...[{}, { ignoreBOM: true }].map((options) => {
      const decoder = new TextDecoder("utf-8", options);
      return TEXTS.map((each) => decoder.decode(Uint8Array.from(each)));
    }),
    text(new Uint8Array([0x61, 0x62, 0x63]).subarray(1)),
    new URLSearchParams({ labelSelector: "a in (b,c),!d", "ä b": "~*-._'()!+&=%", empty: "" }).toString(),
    new URLSearchParams({ a: "\ud800" }).toString(),
  ],
  async aborts() {
    const seen: unknown[] = [];
    const { signal } = new AbortController();
    const controller = new AbortController();
    const listener = () => seen.push("removed");
    controller.signal.addEventListener("abort", listener);
    controller.signal.removeEventListener("abort", listener);
    controller.signal.addEventListener("abort", () => seen.push("one"), { once: true });
    controller.signal.addEventListener("abort", () => seen.push(controller.signal.aborted));
    controller.abort();
    controller.abort(new Error("again"));
    seen.push(signal.aborted, signal.reason, (controller.signal.reason as Error).name);
    const own = new AbortController();
    own.abort("mine");
    seen.push(own.signal.reason);
    return seen;
  },
};
