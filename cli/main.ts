import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pc from "picocolors";
import { execute } from "./execute";
import type { Io } from "./io";
import { runProgram } from "./program";
import { fetchText } from "./web";

// A reader of our output, such as head, may close it early.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
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
  watched: process.stderr.isTTY === true,
  // A terminal that does not know its size says 0.
  columns: (process.stdout.isTTY === true && process.stdout.columns) || undefined,
  fetch: fetchText,
};

runProgram(process.argv.slice(2), io, basename(process.argv[1] ?? "")).then((code) => {
  process.exitCode = code;
});
