import {
  closeSync,
  existsSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { appendLine } from "./call-log";
import { Errno } from "./errno";
import { FakeHost } from "./fake.testing";

/** Real files, by Node. */
class FilesHost extends FakeHost {
  /** Locked files, with their descriptors: all hosts share one process here. */
  private static readonly locks = new Map<number, number>();
  private attempt(call: () => number): number {
    try {
      return call();
    } catch (error) {
      return (error as NodeJS.ErrnoException).errno ?? -1;
    }
  }
  override open(path: string, flags = 0, mode = 0): number {
    return this.attempt(() => openSync(path, flags, mode));
  }
  override write(descriptor: number, bytes: Uint8Array): number {
    return this.attempt(() => writeSync(descriptor, bytes));
  }
  override seek = (descriptor: number) => this.attempt(() => fstatSync(descriptor).size);
  override close = (descriptor: number) =>
    this.attempt(() => {
      for (const [ino, owner] of FilesHost.locks) if (owner === descriptor) FilesHost.locks.delete(ino);
      closeSync(descriptor);
      return 0;
    });
  override flock = (descriptor: number) => {
    const { ino } = fstatSync(descriptor);
    if (FilesHost.locks.has(ino)) return -Errno.EAGAIN;
    FilesHost.locks.set(ino, descriptor);
    return 0;
  };
  override rename = (from: string, to: string) =>
    this.attempt(() => {
      renameSync(from, to);
      return 0;
    });
  override statx(path: string, _flags: number, _mask: number, into: Uint8Array): number {
    return this.attempt(() => {
      const { ino, dev } = statSync(path, { bigint: true });
      const view = new DataView(into.buffer, into.byteOffset, into.byteLength);
      view.setBigUint64(0x20, ino, true);
      view.setBigUint64(0x88, dev, true);
      return 0;
    });
  }
}

describe("the log of calls", () => {
  const directory = mkdtempSync(join(tmpdir(), "call-log-"));
  const path = join(directory, "plugin.log");
  const host = new FilesHost();
  afterAll(() => rmSync(directory, { recursive: true }));

  it("does nothing without the directory", () => {
    const absent = join(directory, "absent", "plugin.log");
    appendLine(host, absent, "x\n");
    expect(existsSync(absent)).toBe(false);
  });

  it("appends, and renames a full log once", () => {
    appendLine(host, path, "first\n");
    appendLine(host, path, "second\n");
    expect(readFileSync(path, "utf8")).toBe("first\nsecond\n");
    const big = `${"x".repeat(1024 * 1024 - 1)}\n`;
    for (let written = 0; written < 9; written++) appendLine(host, path, big);
    expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(5 * 1024 * 1024);
    expect(statSync(path).size).toBeLessThan(4 * 1024 * 1024);
    expect(existsSync(`${path}.2`)).toBe(false);
  });

  it("does not rename the new log if another call has renamed the full one", () => {
    writeFileSync(path, "x".repeat(4 * 1024 * 1024));
    const raced = new FilesHost();
    raced.seek = (descriptor) => {
      renameSync(path, `${path}.1`);
      writeFileSync(path, "another call's\n");
      return fstatSync(descriptor).size;
    };
    appendLine(raced, path, "last\n");
    expect(readFileSync(path, "utf8")).toBe("another call's\n");
    expect(readFileSync(`${path}.1`, "utf8")).toMatch(/xlast\n$/);
  });

  it("loses no line if two calls find it full at the same time", () => {
    const path = join(directory, "full.log");
    const filled = `${"x".repeat(4 * 1024 * 1024)}\n`;
    writeFileSync(path, filled);
    const slow = new FilesHost();
    slow.rename = (from, to) => {
      appendLine(host, path, "another call's\n");
      appendLine(host, path, "and a later one's\n");
      renameSync(from, to);
      return 0;
    };
    appendLine(slow, path, "the slow call's\n");
    appendLine(host, path, "last\n");
    const text = readFileSync(`${path}.1`, "utf8") + readFileSync(path, "utf8");
    expect(text).toBe(`${filled}the slow call's\nanother call's\nand a later one's\nlast\n`);
  });
});
