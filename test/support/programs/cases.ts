/** Uses of system/ and the usual globals: they give the same results under Node and on the engine. */
import { run } from "../../../system/child";
import * as fs from "../../../system/fs";

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

function decoded(parts: readonly (readonly number[])[], options: object): unknown {
  const decoder = new TextDecoder("utf-8", options);
  const texts: string[] = [];
  for (const part of parts) texts.push(decoder.decode(new Uint8Array(part), { stream: true }));
  return [...texts, decoder.decode()];
}

const PARTS: readonly (readonly (readonly number[])[])[] = [
  [[0xe2, 0x82], [0xac]],
  [[0xf0], [0x9f], [0x98], [0x80]],
  [
    [0xef, 0xbb, 0xbf, 0x41],
    [0xef, 0xbb, 0xbf],
  ],
  [[], [0xef, 0xbb], [0xbf, 0x42]],
  [[0x41, 0xff], [0x42]],
  [[0xe2, 0x82]],
  [[0xe2, 0x28], [0xa1]],
  [[0xef, 0xbf, 0xbd]],
  [[0xed, 0xa0, 0x80]],
];

export const cases: Readonly<Record<string, Case>> = {
  async makesFiles(directory) {
    const path = (name: string) => `${directory}/${name}`;
    const results = [
      await told(() => fs.mkdirSync(path("made"), 0o700)),
      await told(() => fs.mkdirSync(path("made"), 0o700)),
      await told(() => fs.createFileSync(path("made/file"), bytes("grüße\n"), 0o4755)),
      await told(() => fs.createFileSync(path("made/file"), bytes("other"), 0o644)),
      await told(() => fs.createFileSync(path("none/file"), bytes("other"), 0o644)),
      await told(() => fs.copyFileSync(path("made/file"), path("made/copy"), 0o600)),
      await told(() => fs.copyFileSync(path("made/file"), path("made/copy"), 0o600)),
      await told(() => fs.copyFileSync(path("made/none"), path("made/copy2"), 0o600)),
      await told(() => fs.linkSync(path("made/file"), path("made/second"))),
      await told(() => fs.linkSync(path("made/none"), path("made/third"))),
      await told(() => fs.symlinkSync("second", path("made/link"))),
      await told(() => fs.symlinkSync("nowhere", path("made/dangling"))),
      await told(() => fs.renameSync(path("made/copy"), path("made/renamed"))),
      await told(() => fs.renameSync(path("made/copy"), path("made/renamed"))),
      await told(() => fs.chownSync(path("made/none"), 0, 0)),
      await told(() => fs.settleSync(path("made"))),
      await told(() => fs.settleSync(path("made/file"))),
      await told(() => fs.settleSync(path("made/none"))),
      await told(() => fs.rmdirSync(path("made"))),
      await told(() => fs.unlinkSync(path("made"))),
      await told(() => fs.createFileSync(path("made/gone"), new Uint8Array(300_000), 0o640)),
      fs.statSync(path("made/gone")).size,
      await told(() => fs.unlinkSync(path("made/gone"))),
      await told(() => fs.unlinkSync(path("made/gone"))),
    ];
    return results;
  },
  async looksAtFiles(directory) {
    const path = (name: string) => `${directory}/${name}`;
    fs.mkdirSync(path("seen"), 0o750);
    fs.createFileSync(path("seen/ö file"), bytes("\ufeffgrüße\n"), 0o644);
    fs.symlinkSync("ö file", path("seen/link"));
    fs.symlinkSync("loop", path("seen/loop"));
    fs.symlinkSync("nowhere", path("seen/dangling"));
    for (const name of ["b", "a", "10", "9", "Z"]) fs.createFileSync(path(`seen/${name}`), bytes(name), 0o600);
    const shown = (stats: fs.Stats | undefined) =>
      stats && {
        ...{ mode: stats.mode, uid: stats.uid, gid: stats.gid, size: stats.size },
        kinds: [stats.isFile(), stats.isDirectory(), stats.isSymbolicLink()],
      };
    const file = path("seen/ö file");
    const descriptor = fs.openSync(file, "r");
    const into = new Uint8Array(16);
    const read = [
      fs.readSync(descriptor, into, 2, 4, null),
      fs.readSync(descriptor, into, 6, 2, 0),
      fs.readSync(descriptor, into, 8, 8, null),
      fs.readSync(descriptor, into, 0, 8, 100),
    ];
    fs.closeSync(descriptor);
    const [one, same, other] = [fs.statSync(file), fs.lstatSync(file), fs.statSync(path("seen/a"))];
    return [
      shown(one),
      shown(fs.statSync(path("seen/link"))),
      shown(fs.lstatSync(path("seen/link"))),
      shown(fs.lstatSync(path("seen/dangling"))),
      shown(fs.statSync(path("seen"))),
      [one.ino === same.ino, one.ino === other.ino, one.dev === other.dev, one.dev],
      [one.mtimeMs === same.mtimeMs, one.ctimeMs > 1.7e12, one.mtimeMs > 1.7e12],
      await told(() => fs.statSync(path("seen/none"), { throwIfNoEntry: false })),
      await told(() => fs.statSync(`${file}/none`, { throwIfNoEntry: false })),
      await told(() => fs.statSync(path("seen/none"))),
      await told(() => fs.statSync(path("seen/loop"), { throwIfNoEntry: false })),
      fs.readFileSync(file, "utf8"),
      text(fs.readFileSync(file)),
      fs.readFileSync("/proc/self/mountinfo", "utf8").length > 0,
      await told(() => fs.readFileSync(path("seen"))),
      await told(() => fs.readFileSync(path("seen/none"), "utf8")),
      read,
      [...into],
      await told(() => fs.openSync(path("seen/none"), "r")),
      await told(() => fs.closeSync(999)),
      fs.readdirSync(path("seen")),
      fs
        .readdirSync(path("seen"), { withFileTypes: true })
        .map((each) => [each.name, each.isDirectory(), each.isSymbolicLink()]),
      fs.readdirSync(directory, { withFileTypes: true }).map((each) => [each.name, each.isDirectory()]),
      await told(() => fs.readdirSync(file)),
      await told(() => fs.readdirSync(path("seen/none"))),
      fs.readlinkSync(path("seen/link")),
      await told(() => fs.readlinkSync(file)),
      fs.realpathSync(path("seen/link")) === fs.realpathSync(file),
      await told(() => fs.realpathSync(path("seen/dangling"))),
      ["seen", "seen/none", "seen/dangling", "seen/link"].map((name) => fs.existsSync(path(name))),
      await told(() => fs.accessSync(file, fs.constants.W_OK)),
      await told(() => fs.accessSync(file, fs.constants.X_OK)),
      await told(() => fs.accessSync(path("seen/none"), fs.constants.W_OK)),
      fs.statfsSync(directory).bsize,
      fs.statfsSync(directory).bavail > 0,
      await told(() => fs.statfsSync(path("seen/none"))),
    ];
  },
  async manyFiles(directory) {
    const names = Array.from({ length: 300 }, (_, at) => `${"name ".repeat(40)}${at}`);
    fs.createFileSync(`${directory}/first`, bytes("x"), 0o600);
    for (const name of names) fs.linkSync(`${directory}/first`, `${directory}/${name}`);
    return fs.readdirSync(directory);
  },
  async watches(directory) {
    const results: unknown[] = [await told(() => fs.watch(`${directory}/none`, () => undefined))];
    let changed: () => void = () => undefined;
    const watched = fs.watch(directory, () => changed());
    const other = fs.watch(directory, () => undefined);
    for (const change of [
      () => fs.createFileSync(`${directory}/one`, bytes("1"), 0o600),
      () => fs.renameSync(`${directory}/one`, `${directory}/two`),
      () => fs.unlinkSync(`${directory}/two`),
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
    await run("/nonexistent", [], { env: {}, cwd: "/", timeoutMs: 5000, maxBytes: 10 }),
    await run("/etc/passwd", [], { env: {}, cwd: "/", timeoutMs: 5000, maxBytes: 10 }),
    await run("/bin/sh", ["-c", ":"], { env: {}, cwd: "/nonexistent", timeoutMs: 5000, maxBytes: 10 }),
    { ...(await ended("echo begun; exec sleep 1000", { timeoutMs: 300 })), stdout: "" },
    { ...(await ended("while :; do echo yes; done", { maxBytes: 1000 })), stdout: "" },
    await Promise.all(Array.from({ length: 5 }, (_, at) => ended(`sleep 0.1; echo ${at}`))),
  ],
  texts: () => [
    ["", "grüße €😀", "a\0b", "\ud800a\udc00"].map((each) => [...bytes(each)]),
    PARTS.map((parts) => decoded(parts, {})),
    PARTS.map((parts) => decoded(parts, { ignoreBOM: true })),
    ...PARTS.map((parts) => {
      try {
        return decoded(parts, { fatal: true });
      } catch (error) {
        return (error as Error).name;
      }
    }),
    text(new Uint8Array([0x61, 0x62, 0x63]).subarray(1)),
    new URLSearchParams({ labelSelector: "a in (b,c),!d", "ä b": "~*-._'()!+&=%", empty: "" }).toString(),
    new URLSearchParams([
      ["a", "1"],
      ["a", "\ud800"],
    ]).toString(),
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
    seen.push(own.signal.reason, AbortSignal.abort(5).reason);
    try {
      controller.signal.throwIfAborted();
    } catch (error) {
      seen.push((error as Error).name);
    }
    const late = AbortSignal.timeout(5);
    seen.push(late.aborted);
    await new Promise<void>((resolve) => late.addEventListener("abort", () => resolve()));
    return [...seen, (late.reason as Error).name];
  },
};
