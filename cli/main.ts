import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pc from "picocolors";
import { type Ended, fetchText, type Io } from "./io";
import { runProgram } from "./program";

/** Runs a program to its end, with this one's environment. @throws if it cannot be started */
function execute(program: string, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["inherit", "pipe", "pipe"] });
    const said = { out: [] as Buffer[], err: [] as Buffer[] };
    child.stdout.on("data", (part: Buffer) => said.out.push(part));
    child.stderr.on("data", (part: Buffer) => said.err.push(part));
    child.once("error", reject);
    const text = (parts: readonly Buffer[]) => Buffer.concat(parts).toString("utf8");
    child.once("close", (code) => resolve({ code: code ?? 1, out: text(said.out), err: text(said.err) }));
  });
}

for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    // A reader of our output, such as head, may close it early.
    if (error.code === "EPIPE") return;
    if (stream === process.stderr) process.exit(1);
    process.stderr.write(`l5d-cni: cannot write the output: ${error.message}\n`, () => process.exit(1));
  });
}

const io: Io = {
  env: process.env,
  readFile: (path) => readFileSync(path === "-" ? 0 : path, "utf8"),
  writeFile: (path, content) => {
    if (path === "-") process.stdout.write(content);
    else writeFileSync(path, content, { flag: "wx", mode: 0o600 });
  },
  exists: existsSync,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  run: execute,
  sleep,
  now: () => performance.now(),
  date: () => new Date(),
  colour: pc.isColorSupported && process.stdout.isTTY === true,
  fetch: fetchText,
};

runProgram(process.argv.slice(2), io, basename(process.argv[1] ?? "")).then((code) => {
  process.exitCode = code;
});
