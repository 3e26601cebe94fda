import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import pc from "picocolors";
import { execute } from "./execute";
import type { Io } from "./io";
import { runProgram } from "./program";

// Whoever reads our output may have seen enough, as head does.
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
};

runProgram(process.argv.slice(2), io, process.stdout.columns ?? 120).then((code) => {
  process.exitCode = code;
});
