import { readFileSync } from "node:fs";
import type { Io } from "./io";
import { runProgram } from "./program";

const io: Io = {
  env: process.env,
  readFile: (path) => readFileSync(path === "-" ? 0 : path, "utf8"),
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
};

runProgram(process.argv.slice(2), io, process.stdout.columns ?? 120).then((code) => {
  process.exitCode = code;
});
