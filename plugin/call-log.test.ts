import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { appendLine } from "./call-log";
import { nodeFiles } from "./files/node.testing";

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
});
