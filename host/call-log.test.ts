import {
  closeSync,
  existsSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { appendLine } from "./call-log";
import { FakeHost } from "./fake.testing";

/** Real files, by Node. */
class FilesHost extends FakeHost {
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
      closeSync(descriptor);
      return 0;
    });
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

  it("appends until the log is full", () => {
    appendLine(host, path, "first\n");
    appendLine(host, path, "second\n");
    expect(readFileSync(path, "utf8")).toBe("first\nsecond\n");
    const big = `${"x".repeat(1024 * 1024 - 1)}\n`;
    for (let written = 0; written < 9; written++) appendLine(host, path, big);
    expect(statSync(path).size).toBe(13 + 8 * 1024 * 1024);
  });
});
