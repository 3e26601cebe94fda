import { setTimeout as sleep } from "node:timers/promises";
import { nodeDisk } from "./apply/disk";
import { run } from "./run";

const stopped = new Promise<void>((resolve) => {
  // Not once: without a handler a second signal would end the process in the middle of the removal.
  process.on("SIGTERM", () => resolve());
  process.on("SIGINT", () => resolve());
});

// The runtime's client sends requests, and the token with them, through a proxy that HTTPS_PROXY, ALL_PROXY and the like
// name, in whatever case. The API server is never asked through one.
for (const name of Object.keys(process.env)) if (/_proxy$/i.test(name)) delete process.env[name];

// Whoever read the log may be gone; the node's chain still needs its installer.
process.stdout.on("error", () => undefined);

void run({
  args: process.argv.slice(2),
  environment: process.env,
  disk: nodeDisk,
  sleep,
  write: (line) => void process.stdout.write(line),
  stopped,
}).then((code) => process.exit(code));
