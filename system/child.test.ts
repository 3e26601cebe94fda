import { chmodSync, mkdtempSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apart, run } from "./child";

const directory = mkdtempSync(join(tmpdir(), "child-"));
afterAll(() => rmSync(directory, { recursive: true }));

const options = { env: {}, cwd: "/", timeoutMs: 20_000, maxBytes: 1_000 };
const sh = (script: string, others: Partial<typeof options> = {}) =>
  run("/bin/sh", ["-c", script], { ...options, ...others });

function file(name: string, text: string, mode: number): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

test("what it prints and how it exits is told", async () => {
  expect(await sh("echo out; echo err >&2; exit 3")).toEqual({ code: 3, stdout: "out\n", stderr: "err\n" });
  expect(await sh("exit 0")).toEqual({ code: 0, stdout: "", stderr: "" });
});

test("it has the environment and the directory that it is given, and nothing to read", async () => {
  const { stdout } = await run("/usr/bin/env", [], { ...options, env: { CNI_COMMAND: "VERSION" } });
  expect(stdout).toBe("CNI_COMMAND=VERSION\n");
  expect((await sh("pwd; cat", { cwd: directory })).stdout).toBe(`${directory}\n`);
});

test("the signal that ends it is told", async () => {
  expect(await sh("kill -SEGV $$")).toMatchObject({ signal: "SIGSEGV" });
});

test("it is killed when its time is over", async () => {
  expect(await sh("exec sleep 1000", { timeoutMs: 1 })).toMatchObject({ signal: "SIGKILL", timedOut: true });
});

test("it is killed when it prints too much", async () => {
  expect(await sh("yes")).toMatchObject({ signal: "SIGKILL", tooMuch: true });
  expect(await sh("yes >&2")).toMatchObject({ signal: "SIGKILL", tooMuch: true });
});

test.each([
  ["ENOENT", "is missing", () => join(directory, "none")],
  ["EACCES", "is not executable", () => file("plain", "", 0o644)],
  ["ENOENT", "names an interpreter that is missing", () => file("script", "#!/none\n", 0o755)],
])("%s: a program that %s", async (error, _, path) => {
  expect(await run(path(), [], options)).toEqual({ error, stdout: "", stderr: "" });
});

test("a function that runs apart returns its result, or throws its error", async () => {
  expect(await apart(() => ({ value: 1 }))).toEqual({ value: 1 });
  const failure = apart(() => unlinkSync(join(directory, "none")));
  await expect(failure).rejects.toMatchObject({ code: "ENOENT", message: expect.stringMatching(/^ENOENT/) });
});
