import { rmSync, writeFileSync } from "node:fs";
import type { Verdict } from "../api/api-connection";
import { LIST, Node, PLUGIN } from "./node.testing";

const BROKEN = "#!/bin/sh\nexit 7\n";
const REFUSED: Verdict = { kind: "refused", why: "the API server does not accept this pod's token (401)" };

let node: Node;
let before: object;
beforeEach(() => {
  node = new Node({ "10-k.conflist": LIST });
  before = node.content();
});
afterEach(() => rmSync(node.root, { recursive: true }));

const CHAINED = () => ({ chain: node.path("net.d", "10-k.conflist") });
const image = (plugin: string) => writeFileSync(node.path("image", "linkerd-cni"), plugin);
const token = (text: string) => writeFileSync(node.path("account", "token"), text);
const owner = (): string => JSON.parse(node.read("linkerd-cni.journal")).owner;
const unchain = () => writeFileSync(node.path("net.d", "10-k.conflist"), LIST);
const isChained = () => node.types("10-k.conflist").at(-1) === "linkerd-cni";

/** A node with a working installer and a new version of the image. */
async function rolledOut(plugin: string) {
  const old = node.installer("old");
  expect(await old.reconcile()).toEqual(CHAINED());
  image(plugin);
  return old;
}

test("a working successor takes the node in one step, and its predecessor stays ready while the node works", async () => {
  const old = await rolledOut(`${PLUGIN}# newer\n`);
  const successor = node.installer("new");
  expect(await successor.reconcile()).toEqual(CHAINED());
  expect(owner()).toBe("new");
  const installed = node.content();
  expect(installed["bin/linkerd-cni"]).toContain("# newer");
  expect(await old.reconcile()).toEqual(CHAINED());
  await old.remove(false);
  await old.leave();
  expect(node.content()).toEqual(installed);
});

/** Failures of a new version, and the messages of its pod. */
const failures: readonly (readonly [string, () => void, string])[] = [
  ["whose plugin does not run", () => image(BROKEN), "does not answer VERSION on this node: it exits with 7"],
  ["whose token is refused", () => token("refused"), "does not accept this pod's token"],
  ["that the API server does not answer", () => token("unanswered"), "the API server does not answer this pod"],
];

describe.each(failures)("a successor %s", (_, fail, why) => {
  const verdicts: Readonly<Record<string, Verdict>> = { refused: REFUSED, unanswered: { kind: "unknown" } };
  beforeEach(() => {
    node.accepts = (given) => verdicts[given] ?? { kind: "accepted" };
  });

  test("changes nothing, is not ready, and leaves nothing behind; its predecessor continues", async () => {
    const old = await rolledOut(PLUGIN);
    const installed = node.content();
    fail();
    const successor = node.installer("new");
    expect((await successor.reconcile()).problem).toContain(why);
    expect((await successor.reconcile()).problem).toContain("old keeps the node");
    await successor.leave();
    expect(node.content()).toEqual(installed);
    image(PLUGIN);
    token("token-1");
    unchain();
    expect(await old.reconcile()).toEqual(CHAINED());
    await old.remove(false);
    expect(node.content()).toEqual(before);
  });

  test("that starts after its predecessor has left keeps what works, and chains it again", async () => {
    const old = await rolledOut(PLUGIN);
    await old.leave();
    fail();
    const successor = node.installer("new");
    // Readiness reports what is wrong with the token.
    const found = why.includes("VERSION") ? { problem: expect.stringContaining(why) } : CHAINED();
    expect(await successor.reconcile()).toMatchObject(found);
    unchain();
    expect(await successor.reconcile()).toMatchObject(found);
    expect(isChained()).toBe(true);
    expect(node.content()["bin/linkerd-cni"]).toBe(PLUGIN);
    await successor.remove(false);
    expect(node.content()).toEqual(before);
  });

  test.each([
    ["answers look-ups", true],
    ["has ended", false],
  ])(
    "that starts after its predecessor was killed chains a node without an installer: it %s",
    async (_is, isServed) => {
      node.isServed = isServed;
      await rolledOut(PLUGIN);
      fail();
      const successor = node.installer("new");
      await successor.reconcile();
      unchain();
      expect((await successor.reconcile()).problem).toContain("old keeps the node");
      expect(isChained()).toBe(false);
      node.now += 10_000;
      await successor.reconcile();
      expect(isChained()).toBe(true);
      expect(owner()).toBe("new");
    },
  );
});

test("an installer that had the node takes it back from one that does not answer look-ups for ten seconds", async () => {
  const old = await rolledOut(`${PLUGIN}# newer\n`);
  await node.installer("new").reconcile();
  node.isServed = false;
  expect((await old.reconcile()).problem).toContain("new keeps the node: it does not answer look-ups");
  node.now += 10_000;
  expect(await old.reconcile()).toEqual(CHAINED());
  expect(owner()).toBe("old");
});

test("an older pod whose container restarts beside a newer one does not take the node back", async () => {
  await rolledOut(`${PLUGIN}# newer\n`);
  const successor = node.installer("new");
  await successor.reconcile();
  const installed = node.content();
  image(PLUGIN);
  const restarted = node.installer("old");
  await restarted.reconcile();
  node.now += 60_000;
  await restarted.reconcile();
  await restarted.remove(false);
  expect(node.content()).toEqual(installed);
});

test("an older pod whose container restarts is ready while the node works, even if the newer one never returns", async () => {
  await rolledOut(`${PLUGIN}# newer\n`);
  await node.installer("new").reconcile();
  image(PLUGIN);
  const restarted = node.installer("old");
  expect(await restarted.reconcile()).toEqual(CHAINED());
  unchain();
  expect((await restarted.reconcile()).problem).toContain(
    "new keeps the node: the configuration in force is not chained",
  );
  node.now += 10_000;
  expect(await restarted.reconcile()).toEqual(CHAINED());
  expect(owner()).toBe("old");
});

test("a newer pod that broke the node is not ready, and does not take it back from the older one", async () => {
  const old = await rolledOut(`${PLUGIN}# newer\n`);
  const successor = node.installer("new");
  expect(await successor.reconcile()).toEqual(CHAINED());
  unchain();
  await old.reconcile();
  node.now += 10_000;
  expect(await old.reconcile()).toEqual(CHAINED());
  for (const each of [successor, node.installer("new")]) {
    expect((await each.reconcile()).problem).toContain("old keeps the node: it took the node back");
  }
  expect(await old.reconcile()).toEqual(CHAINED());
  expect(owner()).toBe("old");
});

test("a newer pod whose container restarts gets its node back, although the older one had it meanwhile", async () => {
  const old = await rolledOut(PLUGIN);
  const successor = node.installer("new");
  await successor.reconcile();
  await successor.leave();
  expect(await old.reconcile()).toEqual(CHAINED());
  expect(owner()).toBe("old");
  const again = node.installer("new");
  expect(await again.reconcile()).toEqual(CHAINED());
  expect(owner()).toBe("new");
});

test("a successor that leaves gives the node back, and its predecessor keeps it", async () => {
  const old = await rolledOut(PLUGIN);
  const successor = node.installer("new");
  await successor.reconcile();
  await successor.leave();
  expect(await old.reconcile()).toEqual(CHAINED());
  await old.remove(false);
  expect(node.content()).toEqual(before);
});

test("a node that its new installer does not keep working is repaired by the previous one after ten seconds", async () => {
  const old = await rolledOut(PLUGIN);
  await node.installer("new").reconcile();
  unchain();
  expect((await old.reconcile()).problem).toContain("new keeps the node: the configuration in force is not chained");
  node.now += 10_000;
  expect(await old.reconcile()).toEqual(CHAINED());
  expect(owner()).toBe("old");
});

test("a new version that does not chain keeps the node, and its predecessor stays ready", async () => {
  const old = await rolledOut(PLUGIN);
  const successor = node.installer("new", false);
  expect(await successor.reconcile()).toEqual({});
  expect((await old.reconcile()).problem).toBeUndefined();
  node.now += 10_000;
  expect((await old.reconcile()).problem).toBeUndefined();
  expect(owner()).toBe("new");
  expect(isChained()).toBe(false);
  await successor.leave();
  expect(await old.reconcile()).toEqual(CHAINED());
});

test("two installers that both cannot chain a node do not take it from each other", async () => {
  const old = await rolledOut(PLUGIN);
  const successor = node.installer("new");
  await successor.reconcile();
  rmSync(node.path("net.d", "10-k.conflist"));
  rmSync(node.path("net.d", "10-k.conflist.linkerd-cni-original"));
  for (let round = 0; round < 4; round += 1) {
    node.now += 11_000;
    await old.reconcile();
    await successor.reconcile();
  }
  expect(owner()).toBe("new");
});

test("an installer that never had the node removes what a killed one left", async () => {
  await node.installer("first").reconcile();
  await node.installer("second").remove(false);
  expect(node.content()).toEqual(before);
});

test("an installer that had the node removes what its killed successor of the same DaemonSet left", async () => {
  const old = await rolledOut(PLUGIN);
  await node.installer("new").reconcile();
  node.isSibling = () => true;
  await old.remove(false);
  expect(node.content()).toEqual(before);
});

test("a node that a pod takes while another removes everything stays as it is", async () => {
  const old = await rolledOut(PLUGIN);
  node.isSibling = () => true;
  node.sleep = async () => void (await node.installer("new").reconcile());
  await old.remove(false);
  expect(owner()).toBe("new");
  expect(isChained()).toBe(true);
});

test("an installer that has not had the node leaves what another DaemonSet has there", async () => {
  await node.installer("first").reconcile();
  const installed = node.content();
  node.isSibling = () => false;
  await node.installer("second").remove(false);
  expect(node.content()).toEqual(installed);
});

test("two installers that remove at the same time remove everything", async () => {
  const old = await rolledOut(PLUGIN);
  const successor = node.installer("new");
  node.accepts = () => ({ kind: "unknown" });
  await successor.reconcile();
  await Promise.all([old.remove(false), successor.remove(false)]);
  expect(node.content()).toEqual(before);
});

describe("a plugin directory, or one for configurations, that an upgrade changes", () => {
  test.each(["bin", "net.d"])("is refused if the installation on the node has another one: %s", async (name) => {
    node.makeRunDirectory();
    const old = node.installer("old");
    await old.reconcile();
    const installed = node.content();
    node.move(name, `${name}.2`);
    const successor = node.installer("new");
    const { problem } = await successor.reconcile();
    expect(problem).toContain(`was changed from /${name} to /${name}.2`);
    expect(problem).toContain("uninstall, and install with the new value");
    await successor.leave();
    expect(node.content()).toEqual(installed);
    await old.remove(false);
    expect(node.content()).toEqual(before);
    expect(await successor.reconcile()).toMatchObject({});
    expect((await successor.reconcile()).problem ?? "").not.toContain("was changed");
  });

  test("may have another name for the same directory", async () => {
    node.makeRunDirectory();
    await node.installer("old").reconcile();
    node.move("bin", "bin.2", true);
    expect(await node.installer("new").reconcile()).toEqual(CHAINED());
  });
});
