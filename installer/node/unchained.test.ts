import { rmSync } from "node:fs";
import { LIST, Node } from "./node.testing";

test("for Multus all but the chain is installed, and a chain is taken away; a successor is trusted", () => {
  const node = new Node({ "10-k.conflist": LIST });
  const before = node.content();
  node.installer("zeroth").reconcile();
  const installer = node.installer("first", false);
  expect(installer.reconcile()).toEqual({});
  expect(node.read("10-k.conflist")).toBe(LIST);
  expect(Object.keys(node.content()).sort()).toEqual(
    ["bin/linkerd-cni", "net.d/10-k.conflist", "net.d/ZZZ-linkerd-cni-kubeconfig", "net.d/linkerd-cni.journal"].sort(),
  );
  const second = node.installer("second", false);
  second.reconcile();
  expect(installer.reconcile()).toEqual({ problem: expect.stringContaining("second has installed since") });
  node.now += 60_000;
  expect(installer.reconcile()).toEqual({ problem: expect.stringContaining("second has installed since") });
  second.remove(false);
  expect(node.content()).toEqual(before);
  rmSync(node.root, { recursive: true });
});
