import { setTimeout as sleep } from "node:timers/promises";
import { type Definition, MultusApi, OperatorProcess } from "../support/multus";
import { mebibytes } from "../support/processes";
import { buildPrograms } from "../support/program";
import { realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { rounds } from "../support/rounds";
import { until } from "../support/until";

jest.setTimeout(600_000);

const NAMESPACES = rounds(1_000, 5_000);
/** Writes a second, and how many at once after a rest: as fast as a small machine's API server follows. */
const RATE = 200;
const BURST = 200;
/** MiB that the operator may take at its peak. */
const MEMORY = rounds(16, 50);
const RESOURCES = ["namespaces", "network-attachment-definitions", "configmaps", "leases"];

const say = (line: string) => process.stdout.write(`${line}\n`);

suite(`the operator with ${NAMESPACES} namespaces on a real API server`, realApiMissing(), () => {
  let cluster!: MultusApi;
  let operator!: OperatorProcess;

  beforeAll(async () => {
    [cluster] = await Promise.all([MultusApi.start(), buildPrograms()]);
    await cluster.installMultus();
    await cluster.configure({ type: "linkerd-cni", linkerd: { "proxy-uid": 2102 } });
    const start = performance.now();
    const names = Array.from({ length: NAMESPACES }, (_, index) => `team-${index}`);
    const create = async () => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) await cluster.namespace(name, "enabled");
    };
    await Promise.all(Array.from({ length: 8 }, create));
    say(`created ${NAMESPACES} namespaces in ${seconds(start)}`);
  });

  afterAll(async () => {
    await operator?.end();
    await cluster?.close();
  });

  const seconds = (start: number) => `${((performance.now() - start) / 1_000).toFixed(1)} s`;

  /** The API server's request counts so far, by verb and resource. */
  async function requests(): Promise<ReadonlyMap<string, number>> {
    const { body } = await cluster.api.request({ path: "/metrics" });
    const counts = new Map<string, number>();
    for (const line of body.split("\n")) {
      const [, labels = "", count] = /^apiserver_request_total\{(.*)\} (\S+)$/.exec(line) ?? [];
      const { resource = "", verb = "" } = Object.fromEntries(
        [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
      );
      const key = `${verb} ${resource}`;
      if (RESOURCES.includes(resource)) counts.set(key, (counts.get(key) ?? 0) + Number(count));
    }
    return counts;
  }

  /** Does something, and says what it took. @returns milliseconds and requests */
  async function measure(what: string, work: () => Promise<void>) {
    const before = await requests();
    const start = performance.now();
    await work();
    const ms = performance.now() - start;
    const after = await requests();
    const made = [...after].map(([key, count]) => [key, count - (before.get(key) ?? 0)] as const);
    const peak = mebibytes(operator.child.pid, "VmHWM");
    say(`${what}: ${(ms / 1_000).toFixed(1)} s, peak memory ${peak.toFixed(0)} MiB`);
    say(
      `  ${made
        .filter(([, count]) => count > 0)
        .map(([key, count]) => `${key} ${count}`)
        .join(", ")}`,
    );
    return { ms, peak, made: new Map(made) };
  }

  /** Asks now and then only: to answer, the operator counts all namespaces. */
  const settled = (applies: number) =>
    until(
      `${applies} definitions to be written`,
      async () => {
        await sleep(250);
        return (await operator.metric("applies_total")) >= applies && (await operator.metric("queue_depth")) === 0;
      },
      240,
    );

  async function expectAll(uid: number): Promise<void> {
    const { items } = await cluster.api.json<{ items: readonly Definition[] }>({ path: cluster.definitionsPath() });
    expect(items).toHaveLength(NAMESPACES);
    const uids = items.map(({ spec }) => (JSON.parse(spec.config) as { linkerd: object }).linkerd);
    expect(new Set(uids.map((each) => JSON.stringify(each)))).toEqual(new Set([`{"proxy-uid":${uid}}`]));
  }

  /** Each definition was written once, no faster than is allowed, in bounded memory, and nothing was refused. */
  async function expectOrderly({ ms, peak, made }: Awaited<ReturnType<typeof measure>>): Promise<void> {
    expect(peak).toBeLessThanOrEqual(MEMORY);
    expect(made.get("APPLY network-attachment-definitions")).toBe(NAMESPACES);
    expect(ms).toBeGreaterThanOrEqual(((NAMESPACES - BURST) / RATE) * 1_000);
    expect((await operator.ask("/metrics")).text).not.toMatch(/^linkerd_multus_errors_total/m);
    expect(operator.log.filter((line) => line.includes(": warn: "))).toEqual([]);
  }

  test("makes a definition in each, and changes each once when the ConfigMap changes", async () => {
    const flags = [`-requests-per-second=${RATE}`, `-request-burst=${BURST}`];
    const converging = await measure("converged", async () => {
      operator = await OperatorProcess.start(cluster, "linkerd-multus-1", flags);
      await settled(NAMESPACES);
    });
    await expectAll(2102);
    await expectOrderly(converging);
    const changing = await measure("followed the ConfigMap", async () => {
      await cluster.configure({ type: "linkerd-cni", linkerd: { "proxy-uid": 2200 } });
      await settled(2 * NAMESPACES);
    });
    await expectAll(2200);
    await expectOrderly(changing);
  });
});
