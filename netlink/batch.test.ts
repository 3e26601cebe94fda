import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { examples } from "../cni/redirect/examples.testing";
import { redirectRules } from "../cni/redirect/rules";
import { creationBatch, replacementBatch } from "./batch";
import { messages } from "./codec";

/** One message per line, so that a difference shows its place. */
function hexDump(bytes: Uint8Array): string {
  const batch = Buffer.from(bytes);
  const lines: string[] = [];
  for (let at = 0; at < batch.length; at += batch.readUInt32LE(at)) {
    lines.push(batch.subarray(at, at + batch.readUInt32LE(at)).toString("hex"));
  }
  return `${lines.join("\n")}\n`;
}

/** Compares with a golden; UPDATE_GOLDENS=1 writes it, and the kernel test then verifies it. */
function expectGolden(name: string, actual: string): void {
  const path = join(__dirname, "goldens", name);
  if (process.env["UPDATE_GOLDENS"] === "1") writeFileSync(path, actual);
  expect(actual).toBe(readFileSync(path, "utf8"));
}

describe("the netlink batch", () => {
  it.each(Object.entries(examples))("creates the tables of example %s", (name, options) => {
    expectGolden(`${name}.create.hex`, hexDump(creationBatch(redirectRules(options))));
  });

  it("replaces the tables of the whole example", () => {
    expectGolden("whole.replace.hex", hexDump(replacementBatch(redirectRules(examples.whole), [])));
  });

  it("is framed, numbered without gaps, and requests one acknowledgement", () => {
    const batch = creationBatch(redirectRules(examples.whole));
    const all = [...messages(batch)];
    expect(all.at(0)?.type).toBe(0x10);
    expect(all.at(-1)?.type).toBe(0x11);
    expect(all.map(({ sequence }) => sequence)).toEqual(all.map((_, index) => index));
    const flags = hexDump(batch)
      .trim()
      .split("\n")
      .map((line) => Number.parseInt(line.slice(12, 14), 16));
    expect(flags.filter((each) => (each & 0x4) !== 0)).toHaveLength(1);
  });
});
