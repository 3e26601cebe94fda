import { lstatSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ApiStub, json } from "../support/api-server";
import { freePort } from "../support/ports";
import { buildPrograms } from "../support/program";
import { TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge"}\n]}\n';

jest.setTimeout(60_000);

let api: ApiStub;
let node: TestNode;
beforeAll(buildPrograms);
beforeEach(async () => {
  api = await ApiStub.start(json(200, {}));
  node = new TestNode({ "10-k.conflist": LIST });
  writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
  writeFileSync(join(node.binDir, "bridge"), "#!/bin/sh\n", { mode: 0o755 });
});
afterEach(() => {
  api.close();
  node.delete();
});

/** Starts an installer of the pod of this name. */
const start = (pod: string, more: Readonly<Record<string, string>> = {}) =>
  node.start({
    UNINSTALL_ON_STOP: "auto",
    KUBERNETES_SERVICE_PORT: String(api.port),
    POD_NAMESPACE: "linkerd-cni",
    POD_NAME: pod,
    ...more,
  });

/** Another directory of the node, with the same configuration and executable in it. */
function another(name: string): string {
  const directory = join(node.root, name);
  mkdirSync(directory);
  writeFileSync(join(directory, "10-k.conflist"), LIST);
  writeFileSync(join(directory, "bridge"), "#!/bin/sh\n", { mode: 0o755 });
  return directory;
}

test.each(["DEST_CNI_NET_DIR", "DEST_CNI_BIN_DIR"])(
  "another %s is refused while the former one has an installation: the old pod continues",
  async (variable) => {
    const before = node.content();
    const old = start("linkerd-cni-x7k2p");
    await old.says("ends in our stanza");
    const installed = node.content();
    const port = await freePort();
    const moved = start("linkerd-cni-bcdfg", { [variable]: another("other"), HEALTH_PORT: String(port) });
    await moved.says("an upgrade cannot do that");
    const answer = await fetch(`http://127.0.0.1:${port}/ready`);
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining("was changed from")]);
    expect(await moved.stop()).toBe(0);
    expect(node.content()).toEqual(installed);
    api.answer = json(404, {});
    expect(await old.stop()).toBe(0);
    expect(node.content()).toEqual(before);
  },
);

test("another name of the same directory is accepted: the new pod takes the node, and the plugin is not a link to itself", async () => {
  const old = start("linkerd-cni-x7k2p");
  await old.says("ends in our stanza");
  const current = join(node.root, "current");
  symlinkSync(node.binDir, current);
  const successor = start("linkerd-cni-bcdfg", { DEST_CNI_BIN_DIR: current });
  await successor.says("had the node: taking it");
  await successor.says("ends in our stanza");
  expect(await old.stop()).toBe(0);
  expect(lstatSync(join(node.binDir, "linkerd-cni")).isFile()).toBe(true);
  expect(node.answers()).toBe(true);
  expect(await successor.stop()).toBe(0);
});

test("after an uninstallation other directories are accepted", async () => {
  const before = node.content();
  const old = start("linkerd-cni-x7k2p", { UNINSTALL_ON_STOP: "always" });
  await old.says("ends in our stanza");
  expect(await old.stop()).toBe(0);
  expect(node.content()).toEqual(before);
  const next = start("linkerd-cni-bcdfg", { DEST_CNI_BIN_DIR: another("other"), UNINSTALL_ON_STOP: "always" });
  await next.says("ends in our stanza");
  expect(await next.stop()).toBe(0);
  expect(node.content()).toEqual(before);
});
