import { nodeDisk } from "./disk";
import { run } from "./run";

const stopped = new Promise<void>((resolve) => {
  process.once("SIGTERM", resolve);
  process.once("SIGINT", resolve);
});

void run({
  args: process.argv.slice(2),
  environment: process.env,
  processId: process.pid,
  disk: nodeDisk,
  write: (line) => void process.stdout.write(line),
  stopped,
}).then((code) => process.exit(code));
