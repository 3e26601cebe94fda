import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { get } from "../support/http";
import { kilobytes } from "../support/processes";
import { buildPrograms } from "../support/program";
import { rounds } from "../support/rounds";
import { until } from "../support/until";
import { type Installer, TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"cilium","plugins":[\n  {"type":"cilium-cni"}\n]}\n';
const NAME = "05-cilium.conflist";
/** A fight lasts so long at least, and until so many repairs were undone. */
const FIGHT_MS = rounds(0, 60_000);
const CONTESTS = 5;
const PORT = 19_871;

async function contested(): Promise<number> {
  const { text } = await get(PORT, "/metrics");
  const line = new RegExp(`linkerd_cni_config_contested\\{file="${NAME}"\\} (\\d+)`);
  return Number(line.exec(text)?.[1] ?? 0);
}

let node: TestNode;
let installer: Installer;
beforeAll(buildPrograms);
beforeEach(() => {
  node = new TestNode({ [NAME]: LIST });
});
afterEach(async () => {
  await installer.stop("SIGKILL");
  node.delete();
});

test("a writer that strips the stanza every 100 ms is damped, named, and outlived", async () => {
  installer = node.start({ HEALTH_PORT: String(PORT) });
  await installer.says("ends in our stanza");
  const before = kilobytes(installer.pid, "RssAnon");
  const inodes = new Set<number>();
  const begin = performance.now();
  while (performance.now() - begin < FIGHT_MS || (await contested()) < CONTESTS) {
    inodes.add(statSync(join(node.netDir, NAME)).ino);
    if (node.isChained(NAME)) node.write(NAME, LIST);
    await sleep(100);
  }
  const writes = installer.log.split(`wrote ${join(node.netDir, NAME)}\n`).length - 1;
  const grown = kilobytes(installer.pid, "RssAnon") - before;
  const counted = await contested();
  const ended = performance.now();
  await until("the chain", () => node.isChained(NAME));
  const calm = performance.now() - ended;
  process.stdout.write(
    `${writes} writes in ${((ended - begin) / 1000).toFixed(0)} s, ${counted} contests, ${grown} kB more, calm after ${calm.toFixed(0)} ms\n`,
  );
  expect(writes).toBeLessThanOrEqual(40);
  expect(counted).toBeGreaterThanOrEqual(CONTESTS);
  expect(grown).toBeLessThan(8_000);
  expect(installer.log).toContain(`another program changed ${join(node.netDir, NAME)} back`);
  expect(installer.log).toContain("waiting to change it again");
  expect(await installer.stop()).toBe(0);
  expect(node.content()).toEqual({ [`net.d/${NAME}`]: LIST });
});

test("files of any size in place of ours do not end the installer", async () => {
  const large = Buffer.alloc(100 << 20, '{"');
  const plugin = join(node.binDir, "linkerd-cni");
  writeFileSync(join(node.netDir, "01-large.conflist"), large);
  writeFileSync(join(node.netDir, "linkerd-cni.journal"), large);
  installer = node.start();
  await installer.says("ends in our stanza");
  for (const round of [1, 2, 3]) {
    writeFileSync(plugin, large);
    await until(`the plugin, round ${round}`, () => statSync(plugin).size !== large.length);
  }
  expect(installer.hasEnded).toBe(false);
  expect(node.answers()).toBe(true);
});
