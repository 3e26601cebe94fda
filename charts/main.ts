import { join } from "node:path";
import { synthesize } from "./synth";

synthesize(join(__dirname, "..")).catch((error: unknown) => {
  process.stderr.write(`charts: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
