import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LIST, Node, SINGLE } from "./node.testing";

test("for Multus everything but the chain is installed, and a chain is removed; a successor takes it over", async () => {
  const node = new Node({ "10-k.conflist": LIST });
  const before = node.content();
  await node.installer("zeroth").reconcile();
  const installer = node.installer("first", false);
  expect(await installer.reconcile()).toEqual({});
  expect(node.read("10-k.conflist")).toBe(LIST);
  expect(Object.keys(node.content()).sort()).toEqual(
    ["bin/linkerd-cni", "bin/linkerd-cni-redirect", "net.d/10-k.conflist", "net.d/linkerd-cni.journal"].sort(),
  );
  const second = node.installer("second", false);
  await second.reconcile();
  expect(await installer.reconcile()).toEqual({});
  node.now += 60_000;
  expect(await installer.reconcile()).toEqual({});
  await second.remove(false);
  expect(node.content()).toEqual(before);
  rmSync(node.root, { recursive: true });
});

test("for Multus a stanza that others have added to a configuration stays", async () => {
  const theirs = LIST.replace('{"type":"bridge"}', '{"type":"bridge"}, {"type":"linkerd-cni"}');
  const node = new Node({ "10-k.conflist": theirs });
  const installer = node.installer("first", false);
  expect(await installer.reconcile()).toEqual({});
  await installer.reconcile();
  expect(node.read("10-k.conflist")).toBe(theirs);
  rmSync(node.root, { recursive: true });
});

test("for Multus our drop-in is removed, and one of others stays", async () => {
  const node = new Node({ "10-k.conflist": LIST });
  const folder = node.path("net.d", "k");
  mkdirSync(folder);
  writeFileSync(join(folder, "99-linkerd-cni.conf"), '{"type":"linkerd-cni"}');
  await node.installer("first", false).reconcile();
  expect(readdirSync(folder)).toEqual(["99-linkerd-cni.conf"]);
  node.runtime = "containerd://2.2.9";
  await node.installer("second").reconcile();
  await node.installer("third", false).reconcile();
  expect([node.read("10-k.conflist"), existsSync(folder)]).toEqual([LIST, false]);
  rmSync(node.root, { recursive: true });
});

test("for Multus a list made from a single plugin's file is removed, with or without the journal", async () => {
  for (const journal of [true, false]) {
    const node = new Node({ "10-k.conf": SINGLE });
    await node.installer("zeroth").reconcile();
    if (!journal) rmSync(node.path("net.d", "linkerd-cni.journal"));
    const installer = node.installer("first", false);
    expect(await installer.reconcile()).toEqual({});
    expect(Object.keys(node.content()).filter((name) => name.includes("10-k"))).toEqual(["net.d/10-k.conf"]);
    rmSync(node.root, { recursive: true });
  }
});
