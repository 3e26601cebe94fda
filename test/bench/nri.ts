/** The NRI plugin's cost of pods with very many labels and annotations, compared with a small one. */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { outputs } from "../../build/paths";
import { FakeRuntime, type Pod } from "../../nri/runtime.testing";
import { freePort } from "../support/ports";

const texts = (length: number, key: (at: number) => string) =>
  Object.fromEntries(Array.from({ length }, (_, at) => [key(at), "v"]));
const short = (at: number) => at.toString(36);

/** None is meshed, so that nothing is measured but the call itself. */
const PODS: Readonly<Record<string, Partial<Pod>>> = {
  "a small pod": {},
  "60,000 annotations": { annotations: texts(60_000, short) },
  "100,000 labels": { labels: texts(100_000, short) },
  "labels as long as the one that is read, 1 MiB": { labels: texts(25_000, (at) => short(at).padEnd(33, "x")) },
  "one annotation of 1 MiB": { annotations: { note: "n".repeat(2 ** 20) } },
};

/** Milliseconds of RunPodSandbox for each pod, the least of some rounds, as lines of text with the ratio to a small pod. */
export async function nriCosts(rounds: number): Promise<readonly string[]> {
  const directory = await mkdtemp(join(tmpdir(), "nri-bench-"));
  const runtime = await FakeRuntime.listen(join(directory, "nri.sock"));
  const env = { NRI_SOCKET_DIR: directory, NRI_NETNS_DIR: directory, HEALTH_PORT: `${await freePort()}` };
  const plugin = spawn(outputs.plugin, ["nri"], { env, stdio: "ignore" });
  try {
    await runtime.synchronized();
    const least = new Map<string, number>();
    for (let round = 0; round < rounds; round++) {
      for (const [name, changes] of Object.entries(PODS)) {
        const prepared = runtime.prepare({ id: name, name: "pod", ...changes });
        const begin = performance.now();
        await prepared();
        least.set(name, Math.min(least.get(name) ?? Number.POSITIVE_INFINITY, performance.now() - begin));
      }
    }
    const [small = 1] = least.values();
    return [...least].map(([name, ms]) => `${name}: ${ms.toFixed(2)} ms, ${(ms / small).toFixed(1)} of a small one`);
  } finally {
    plugin.kill("SIGKILL");
    await runtime.close();
    await rm(directory, { recursive: true });
  }
}
