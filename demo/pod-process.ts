import { connect, createServer } from "node:net";
import type { Listeners } from "./scene";

/** Answers every connection with the listener's name. */
async function serve(listeners: Listeners): Promise<void> {
  for (const [port, name] of Object.entries(listeners)) {
    const server = createServer((socket) => {
      socket.on("error", () => socket.destroy());
      socket.end(name);
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(Number(port), resolve);
    });
  }
  process.stdout.write("listening\n");
}

/** Prints who answers at an address, or the error's code. */
function ask(host: string, port: number): void {
  const socket = connect({ host, port, timeout: 3000 });
  let name = "";
  const done = (answer: string) => {
    process.stdout.write(answer);
    socket.destroy();
  };
  socket.on("data", (chunk: Buffer) => {
    name += chunk.toString();
  });
  socket.on("end", () => done(name));
  socket.on("timeout", () => done("no answer"));
  socket.on("error", (error: NodeJS.ErrnoException) => done(`error ${error.code ?? error.message}`));
}

const [verb, ...rest] = process.argv.slice(2);
if (verb === "serve") {
  serve(JSON.parse(rest[0] ?? "{}") as Listeners).catch((error: Error) => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  });
} else {
  const [host = "", port = "", uid = "0"] = rest;
  if (uid !== "0") process.setuid?.(Number(uid));
  ask(host, Number(port));
}
