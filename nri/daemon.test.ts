import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NriVariable } from "../cni/contract";
import { FakeHost } from "../host/fake.testing";
import { systemClock } from "../process/clock";
import { createLog } from "../process/log";
import { eventually } from "../system/eventually.testing";
import { Daemon } from "./daemon";
import { FakeRuntime } from "./runtime.testing";
import { readSettings } from "./settings";

/** A port that nothing listens on. */
const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });

it("checks running pods whatever clients of the port do", async () => {
  const directory = await mkdtemp(join(tmpdir(), "nri-daemon-"));
  const port = await freePort();
  const running = ["one", "two"].map((name) => ({ id: name, name, netns: `/run/netns/${name}` }));
  const environment: Readonly<Record<string, string>> = {
    [NriVariable.socketDir]: directory,
    [NriVariable.port]: `${port}`,
  };
  const lines: string[] = [];
  const ended = new AbortController();
  const daemon = new Daemon({
    host: new FakeHost({ netfilter: () => [] }),
    settings: readSettings({ env: (name) => environment[name] }),
    log: createLog("debug", "plain", (line) => lines.push(line), "nri"),
    clock: systemClock,
    signal: ended.signal,
  });
  const run = daemon.run();
  const clients = new Set<Socket>();
  try {
    // Each is disconnected for what it sends, and reconnects.
    const come = () => {
      if (ended.signal.aborted) return;
      const client = connect(port, "127.0.0.1", () => client.write("no request\r\n\r\n"));
      clients.add(client.resume().on("error", () => {}));
      client.on("close", () => {
        clients.delete(client);
        come();
      });
    };
    for (let each = 0; each < 4; each++) come();
    const runtime = await FakeRuntime.listen(join(directory, "nri.sock"), { running: [running] });
    const told = () => lines.filter((line) => line.includes("no proxy"));
    await eventually(() => (told().length >= 2 ? true : undefined));
    expect(told()).toEqual([expect.stringContaining("pod shop/one"), expect.stringContaining("pod shop/two")]);
    ended.abort();
    await run;
    await runtime.close();
  } finally {
    ended.abort();
    for (const client of clients) client.destroy();
    await rm(directory, { recursive: true });
  }
});
