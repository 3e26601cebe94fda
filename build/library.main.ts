/** Builds the slowest part of a first build. It runs while npm installs, and needs only this workspace of npm. */
import { buildBytecodeCompiler } from "./engine";

buildBytecodeCompiler().catch((error: unknown) => {
  process.stderr.write(`build: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
