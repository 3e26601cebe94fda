/** The engine's arena under the sanitizers: what no block holds cannot be read unnoticed. */
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildExecutable } from "../../build/engine";
import { root } from "../../build/paths";
import { sanitized } from "../support/host";
import { suite } from "../support/requirements";

jest.setTimeout(600_000);

suite("the arena", sanitized ? undefined : "HOST_SANITIZED=1", () => {
  let directory: string;
  let program: string;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "arena-"));
    program = join(directory, "arena");
    const folder = join(root, "test", "support", "arena");
    await buildExecutable(program, { main: join(folder, "main.ts"), tls: join(folder, "peek.c"), sanitized });
  });
  afterAll(() => rm(directory, { recursive: true }));

  const run = (...calls: readonly (readonly [string, ...number[]])[]) => {
    const { status, stderr } = spawnSync(program, { input: JSON.stringify(calls), encoding: "utf8", env: {} });
    return { status, report: /AddressSanitizer: (\S+)/.exec(stderr)?.[1] };
  };

  it("takes what lies within a block", () => {
    expect(run(["peek", 24, 0], ["peek", 24, 23], ["peek", 4096, 4095])).toEqual({ status: 0, report: undefined });
  });

  it.each([
    // The engine puts 8 bytes of its own before each block, and the arena gives 16 at a time.
    ["behind a block", ["peek", 40, 40]],
    ["far behind it", ["peek", 40, 100_000]],
    ["before it", ["peek", 40, -16]],
    ["in a block that was given back", ["peekFreed", 64]],
  ] as const)("reports a read %s", (_, call) => {
    expect(run(call)).toEqual({ status: 1, report: "use-after-poison" });
  });
});
