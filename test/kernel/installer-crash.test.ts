/** A real kill of the shipped installer, for the system calls. Which operations a kill may interrupt: test/simulation. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiStub, json } from "../support/api-server";
import { buildPrograms } from "../support/program";
import { TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge", "mtu": 1.0}\n]}\n';
const SINGLE = '{"cniVersion":"0.3.1","name":"k","type":"bridge"}\n';
const CHAINED = "pods that start from now on are chained";

let api: ApiStub;
beforeAll(async () => {
  [api] = await Promise.all([ApiStub.start(json(200, {})), buildPrograms()]);
});
afterAll(() => api.close());

function nodeWith(configs: Readonly<Record<string, string>>): TestNode {
  const node = new TestNode(configs);
  writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
  return node;
}

const server = () => ({ KUBERNETES_SERVICE_PORT: String(api.port) });

/** A crash must leave a node that starts pods, that the next start finishes, and that can be put back. */
async function recovers(node: TestNode, list: string, before: object): Promise<void> {
  expect(node.broken()).toEqual([]);
  const next = node.start(server());
  await next.says(CHAINED);
  expect(node.isChained(list)).toBe(true);
  expect(node.broken()).toEqual([]);
  expect(await next.stop()).toBe(0);
  expect(node.content()).toEqual(before);
}

/** The plugin is removed a second after the chain. */
const withinRemoval = (round: number) => (round % 10 < 4 ? 1_000 : 0) + Math.random() * 12;

test("the shipped installer, killed at 20 random moments, never leaves a broken node", async () => {
  const node = nodeWith({ "10-k.conflist": LIST });
  const single = nodeWith({ "10-k.conf": SINGLE });
  const before = new Map([node, single].map((each) => [each, each.content()]));
  const times = { starting: 0, stopping: 0 };
  for (let round = 0; round < 20; round += 1) {
    const each = round % 2 === 0 ? node : single;
    const installer = each.start(server());
    if (round % 4 < 2) {
      await sleep(Math.random() * 80);
      times.starting += 1;
    } else {
      await installer.says(CHAINED);
      void installer.stop("SIGTERM");
      await sleep(withinRemoval(round));
      times.stopping += 1;
    }
    await installer.stop("SIGKILL");
    expect(each.broken()).toEqual([]);
  }
  for (const [each, list] of [
    [node, "10-k.conflist"],
    [single, "10-k.conf.linkerd-cni.conflist"],
  ] as const) {
    await recovers(each, list, before.get(each) ?? {});
    each.delete();
  }
  process.stdout.write(`killed ${times.starting} times while starting, ${times.stopping} times while stopping\n`);
});
