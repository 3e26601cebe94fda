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
