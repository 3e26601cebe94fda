import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isPlugin } from "../../cni/stanza";
import { ApiStub, json } from "../support/api-server";
import { buildPrograms } from "../support/program";
import { buildKilledInstaller, TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge", "mtu": 1.0}\n]}\n';
const SINGLE = '{"cniVersion":"0.3.1","name":"k","type":"bridge"}\n';
const CHAINED = "pods that start from now on are chained";

/** The file that is chained in the end. */
const CHAIN = "10-k.conflist";

jest.setTimeout(300_000);

let work: string;
let killed: string;
let api: ApiStub;
beforeAll(async () => {
  api = await ApiStub.start(json(200, {}));
  work = mkdtempSync(join(tmpdir(), "linkerd-cni-built-"));
  [killed] = await Promise.all([buildKilledInstaller(work), buildPrograms()]);
});
afterAll(() => {
  api.close();
  rmSync(work, { recursive: true });
});

function nodeWith(configs: Readonly<Record<string, string>>): TestNode {
  const node = new TestNode(configs);
  writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
  return node;
}

type Environment = Readonly<Record<string, string>>;

const server = () => ({ KUBERNETES_SERVICE_PORT: String(api.port) });

/** Counts the operations of an installer, see {@link buildKilledInstaller}. */
const countedOf = (node: TestNode) => join(node.root, "counted");

/** Starts the installer to be killed, lets it install and remove, and returns how it ended. */
async function installAndRemove(node: TestNode, environment: Environment, at: number): Promise<number | string> {
  const hasFormer = existsSync(join(node.netDir, CHAIN)) && node.isChained(CHAIN);
  const kill = { KILL_AT: String(at), KILL_COUNTED: countedOf(node) };
  const installer = node.start({ ...server(), ...environment, ...kill }, killed);
  const chained = await installer.says(CHAINED).then(
    () => true,
    () => false,
  );
  const end = chained ? await installer.stop() : await installer.end();
  // Until the removal, a previously chained node stays chained all the time.
  if (!chained && hasFormer) expect(node.types(CHAIN).some(isPlugin)).toBe(true);
  return end;
}

/** A crash must leave a node that starts pods, that the next start finishes, and that can be put back. */
async function recovers(node: TestNode, before: object, environment: Environment, executable?: string): Promise<void> {
  expect(node.broken()).toEqual([]);
  const next = node.start({ ...server(), ...environment }, executable);
  await next.says(CHAINED);
  expect(node.isChained(CHAIN)).toBe(true);
  expect(node.broken()).toEqual([]);
  expect(await next.stop()).toBe(0);
  expect(node.content()).toEqual(before);
}

test("killed halfway through any operation that changes a file, it leaves a whole node and recovers", async () => {
  // Its former version has edited the list; a drop-in beside it takes its place.
  const environment = { CHAINING: "dropin" };
  const chained = () => {
    const node = nodeWith({ [CHAIN]: LIST });
    const before = node.content();
    const runtime = node.readAsRuntime();
    node.installFormer();
    return { node, before, runtime };
  };
  const whole = chained();
  expect(await installAndRemove(whole.node, environment, 0)).toBe(0);
  const total = statSync(countedOf(whole.node)).size;
  whole.runtime.close();
  whole.node.delete();
  expect(total).toBeGreaterThan(20);
  for (let at = 1; at <= total; at += 1) {
    const { node, before, runtime } = chained();
    expect(await installAndRemove(node, environment, at)).toBe("SIGKILL");
    await recovers(node, before, environment, killed);
    runtime.close();
    node.delete();
  }
  process.stdout.write(`killed in each of ${total} operations\n`);
});

/** The plugin is removed a second after the chain. */
const withinRemoval = (round: number) => (round % 20 < 4 ? 1_000 : 0) + Math.random() * 12;

test("the shipped installer, killed at 40 random moments, never leaves a broken node", async () => {
  const node = nodeWith({ "10-k.conflist": LIST });
  const single = nodeWith({ "10-k.conf": SINGLE });
  const before = new Map([node, single].map((each) => [each, each.content()]));
  const times = { starting: 0, stopping: 0 };
  for (let round = 0; round < 40; round += 1) {
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
  for (const each of [node, single]) {
    await recovers(each, before.get(each) ?? {}, {});
    each.delete();
  }
  process.stdout.write(`killed ${times.starting} times while starting, ${times.stopping} times while stopping\n`);
});
