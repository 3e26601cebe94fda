import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { appendLine } from "./call-log";
import { nodeFiles } from "./files/node.testing";
import type { Files } from "./files/port";

describe("the log of calls", () => {
  const directory = mkdtempSync(join(tmpdir(), "call-log-"));
  const path = join(directory, "plugin.log");
  afterAll(() => rmSync(directory, { recursive: true }));

  it("does nothing where the directory is not there", () => {
    const absent = join(directory, "absent", "plugin.log");
    appendLine(nodeFiles, absent, "x\n");
    expect(existsSync(absent)).toBe(false);
  });

  it("appends, and sets a full log aside once", () => {
    appendLine(nodeFiles, path, "first\n");
    appendLine(nodeFiles, path, "second\n");
    expect(readFileSync(path, "utf8")).toBe("first\nsecond\n");
    const big = `${"x".repeat(1024 * 1024 - 1)}\n`;
    for (let written = 0; written < 9; written++) appendLine(nodeFiles, path, big);
    expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(5 * 1024 * 1024);
    expect(statSync(path).size).toBeLessThan(4 * 1024 * 1024);
    expect(existsSync(`${path}.2`)).toBe(false);
  });

  it("leaves the new log alone where another call has set the full one aside", () => {
    writeFileSync(path, "x".repeat(4 * 1024 * 1024));
    const raced: Files = {
      ...nodeFiles,
      size(descriptor) {
        renameSync(path, `${path}.1`);
        writeFileSync(path, "another call's\n");
        return nodeFiles.size(descriptor);
      },
    };
    appendLine(raced, path, "last\n");
    expect(readFileSync(path, "utf8")).toBe("another call's\n");
    expect(readFileSync(`${path}.1`, "utf8")).toMatch(/xlast\n$/);
  });
});
