import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { utf8 } from "../../system/bytes";
import type { Change } from "../plan/change";
import { apply, type Disk, nodeDisk } from "./disk";

let directory: string;
let list: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "disk-"));
  list = join(directory, "10-k.conflist");
  writeFileSync(list, "seen");
});
afterEach(() => rmSync(directory, { recursive: true }));

/** As its owner does, by a rename. */
function write(text: string): void {
  writeFileSync(join(directory, "owner"), text);
  renameSync(join(directory, "owner"), list);
}

/** Exchanges, which Node cannot; the owner writes these texts right before one exchange after the other. */
function diskWith(...texts: readonly string[]): Disk {
  const left = [...texts];
  const exchange = (one: string, other: string) => {
    const next = left.shift();
    if (next !== undefined) write(next);
    renameSync(one, `${one}.third`);
    renameSync(other, one);
    renameSync(`${one}.third`, other);
  };
  return { ...nodeDisk, exchange };
}

const holds = ({ path, bytes }: { readonly path: string; readonly bytes?: Uint8Array | undefined }) =>
  bytes === undefined ? !existsSync(path) : readFileSync(path).equals(bytes);

const original = () => `${list}.linkerd-cni-original`;
const seen = () => ({ path: list, bytes: utf8("seen") });
const replacing = (): Change => ({ do: "write", path: list, bytes: utf8("ours"), mode: 0o644, seen: seen() });

function restoring(): Change {
  writeFileSync(original(), "ours");
  return { do: "restore", from: original(), path: list, bytes: utf8("ours"), seen: seen() };
}

describe.each([
  ["replaced", replacing, []],
  ["restored", restoring, ["10-k.conflist.linkerd-cni-original"]],
])("a list is %s", (_, planned, kept) => {
  test.each([
    ["not at all", diskWith(), "ours", 1],
    ["in the last moment", diskWith("new"), "new", 0],
    ["twice in the last moment", diskWith("new", "newer"), "newer", 0],
    ["not at all, and the file system cannot exchange names", nodeDisk, "ours", 1],
  ])("and its owner writes %s", async (_, disk, text, count) => {
    const applied = await apply([planned()], disk, holds);
    expect([readFileSync(list, "utf8"), applied.count, applied.failure?.code]).toEqual([
      text,
      count,
      count === 0 ? "OUT_OF_DATE" : undefined,
    ]);
    expect(readdirSync(directory)).toEqual(["10-k.conflist", ...(count === 0 ? kept : [])]);
  });

  const absent = () => ({ ...planned(), seen: { path: list } });
  const refused = () => {
    throw Object.assign(new Error("EPERM"), { code: "EPERM" });
  };
  test.each([
    ["not at all", nodeDisk.name, "ours", undefined],
    ["not at all, and the file system has no hard links", refused, "ours", undefined],
    [
      "in the last moment",
      (path: string, existing: string) => {
        write("new");
        nodeDisk.name(path, existing);
      },
      "new",
      "OUT_OF_DATE",
    ],
  ])("under a name that is free, and its owner writes %s", async (_, name, text, code) => {
    rmSync(list);
    const applied = await apply([absent()], { ...nodeDisk, name }, holds);
    expect([readFileSync(list, "utf8"), applied.failure?.code]).toEqual([text, code]);
    expect(readdirSync(directory)).toEqual(["10-k.conflist", ...(code === undefined ? [] : kept)]);
  });
});

test.each([
  ["in the last moment", ["new"], "new"],
  ["twice in the last moment", ["new", "newer"], "newer"],
])("a file to set aside that its owner writes %s", async (_, texts, text) => {
  const left = [...texts];
  const writeNext = () => {
    const next = left.shift();
    if (next !== undefined) write(next);
  };
  const rename = (from: string, to: string) => {
    writeNext();
    renameSync(from, to);
    writeNext();
  };
  const aside: Change = { do: "aside", from: list, path: original(), seen: seen() };
  const applied = await apply([aside], { ...nodeDisk, rename }, holds);
  expect([readFileSync(list, "utf8"), applied.failure?.code]).toEqual([text, "OUT_OF_DATE"]);
  expect(readdirSync(directory)).toEqual(["10-k.conflist"]);
});
