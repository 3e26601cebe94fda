import { nodeDisk } from "./disk";
import { run } from "./run";

const stopped = new Promise<void>((resolve) => {
  // Not once: without a handler a second signal would end the process in the middle of the removal.
  process.on("SIGTERM", () => resolve());
  process.on("SIGINT", () => resolve());
});

// Whoever read the log may be gone; the node's chain still needs its keeper.
process.stdout.on("error", () => undefined);

void run({
  args: process.argv.slice(2),
  environment: process.env,
  processId: process.pid,
  disk: nodeDisk,
  write: (line) => void process.stdout.write(line),
  stopped,
}).then((code) => process.exit(code));
