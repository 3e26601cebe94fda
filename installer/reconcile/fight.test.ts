import { rmSync, writeFileSync } from "node:fs";
import { LIST, Node, SINGLE } from "./node.testing";

const LINKERDS = LIST.replace('{"type":"bridge"}', '{"type":"bridge"}, {"type":"linkerd-cni"}');

/** The state while another program writes a file ten times a second and the installer waits to repair it. */
async function contested(name: string, text: string) {
  const node = new Node({ [name]: text.replace(', {"type":"linkerd-cni"}', "") });
  const installer = node.installer();
  let status = await installer.reconcile();
  for (let writes = 0; writes < 10 && status.againInMs === undefined; writes += 1) {
    writeFileSync(node.path("net.d", name), text);
    node.now += 100;
    status = await installer.reconcile();
  }
  rmSync(node.root, { recursive: true });
  return status;
}

test.each([
  ["a list", "10-k.conflist", LIST],
  ["a single plugin's file, before the list made from it", "10-k.conf", SINGLE],
])("while the owner keeps writing %s, pods are not chained, which is a problem", async (_, name, text) => {
  expect(await contested(name, text)).toMatchObject({
    problem: expect.stringContaining(`${name} is contested`),
    againInMs: expect.any(Number),
  });
});

test("while another installer keeps writing its own stanza, pods are chained", async () => {
  expect(await contested("10-k.conflist", LINKERDS)).toEqual({ againInMs: expect.any(Number) });
});

/** A chained list whose owner writes it again after a pause, and whose installer repairs it as soon as it may. */
async function fought(node: Node, pausesMs: readonly number[]) {
  const installer = node.installer();
  await installer.reconcile();
  const waits: number[] = [];
  for (const pauseMs of pausesMs) {
    writeFileSync(node.path("net.d", "10-k.conflist"), LIST);
    node.now += pauseMs;
    const { againInMs = 0 } = await installer.reconcile();
    waits.push(againInMs === 0 ? 0 : pauseMs + againInMs);
    node.now += againInMs;
    if (againInMs > 0) await installer.reconcile();
    expect(node.types("10-k.conflist")).toEqual(["bridge", "linkerd-cni"]);
  }
  return waits;
}

describe("a list that its owner writes again", () => {
  let node: Node;
  beforeEach(() => {
    node = new Node({ "10-k.conflist": LIST });
  });
  afterEach(() => rmSync(node.root, { recursive: true }));

  test("at once is repaired once at once, then after longer and longer pauses of at most half a minute", async () => {
    const waits = await fought(node, new Array(11).fill(50));
    expect(waits).toEqual([0, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  });

  test.each([2, 3, 30])("every %i s is repaired each time at once", async (seconds) => {
    expect(await fought(node, new Array(20).fill(seconds * 1_000))).toEqual(new Array(20).fill(0));
  });

  test("after a repair that lasted is repaired at once", async () => {
    expect(await fought(node, [50, 50, 50, 2_000, 50, 50])).toEqual([0, 250, 500, 0, 0, 250]);
  });
});
