/** Measures the time from an installer's start until it is ready on a new node, and its cost. */
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { outputs } from "../../build/paths";
import { TestNode } from "../kernel/installer-node";
import { ApiProcess } from "../support/api-process";
import { freePort } from "../support/ports";
import { processorMs } from "../support/processes";
import { startProgram } from "../support/program";

const LIST = '{"name":"k","cniVersion":"1.0.0","plugins":[{"type":"bridge"}]}';

/** The status of the probe; 0 without an answer. */
function probe(port: number): Promise<number> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect(port, "127.0.0.1", () =>
      socket.write("GET /ready HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n"),
    );
    socket.setEncoding("utf8").on("data", (text: string) => {
      answer += text;
    });
    socket.on("error", () => {}).on("close", () => resolve(Number(answer.split(" ")[1] ?? 0)));
  });
}

/** The minimum and median time of some starts, and their mean CPU time, as a line of text. */
export async function installerStarts(rounds: number): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "installer-bench-"));
  const api = await ApiProcess.open(directory);
  const plugin = await readFile(outputs.plugin);
  const times: number[] = [];
  let processor = 0;
  try {
    for (let round = 0; round < rounds; round++) {
      const node = new TestNode({ "10-k.conflist": LIST }, plugin);
      const port = await freePort();
      await writeFile(join(node.accountDir, "ca.crt"), api.ca);
      const begin = performance.now();
      const child = startProgram("install", {
        isSilent: true,
        env: node.environment({
          KUBERNETES_SERVICE_PORT: String(api.port),
          NODE_NAME: "node-1",
          HEALTH_PORT: String(port),
        }),
      });
      const ended = once(child, "close");
      while ((await probe(port)) !== 200) await sleep(1);
      times.push(performance.now() - begin);
      processor += processorMs(child.pid);
      child.kill("SIGKILL");
      await ended;
      node.delete();
    }
    times.sort((one, other) => one - other);
    const [least = 0, median = 0] = [times[0], times[times.length >> 1]];
    return `least ${least.toFixed(1)} ms, median ${median.toFixed(1)} ms, of the processor ${(processor / rounds).toFixed(1)} ms`;
  } finally {
    api.close();
    await rm(directory, { recursive: true });
  }
}
