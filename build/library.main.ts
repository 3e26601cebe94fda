/** Builds what takes longest of a first build: it runs while npm installs, and needs of npm this workspace alone. */
import { buildBytecodeCompiler } from "./engine";

buildBytecodeCompiler().catch((error: unknown) => {
  process.stderr.write(`build: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
