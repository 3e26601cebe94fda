/** The host's memcpy and memmove, compiled as in the executable. */
import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compileAlone } from "../../build/engine";
import { root } from "../../build/paths";
import { suite } from "../support/requirements";

jest.setTimeout(120_000);

suite("copies of memory", process.arch === "x64" ? undefined : "an x86-64 processor", () => {
  test("copy each byte, and no other, whatever the size, the overlap and the alignment", async () => {
    const directory = await mkdtemp(join(tmpdir(), "copies-"));
    try {
      const program = join(directory, "copies");
      await compileAlone(join(root, "test", "support", "copies.c"), program);
      expect(execFileSync(program, { encoding: "utf8" })).toBe("47414 copies\n");
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
