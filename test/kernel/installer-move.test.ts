import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ApiStub, json } from "../support/api-server";
import { get } from "../support/http";
import { freePort } from "../support/ports";
import { buildPrograms } from "../support/program";
import { TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge"}\n]}\n';

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

test("another DEST_CNI_BIN_DIR is refused while the former one has an installation: the old pod continues", async () => {
  const before = node.content();
  const old = start("linkerd-cni-x7k2p");
  await old.says("ends in our stanza");
  const installed = node.content();
  const port = await freePort();
  const other = join(node.root, "other");
  mkdirSync(other);
  writeFileSync(join(other, "bridge"), "#!/bin/sh\n", { mode: 0o755 });
  const moved = start("linkerd-cni-bcdfg", { DEST_CNI_BIN_DIR: other, HEALTH_PORT: String(port) });
  await moved.says("an upgrade cannot do that");
  expect(await get(port, "/ready")).toEqual({ status: 503, text: expect.stringContaining("was changed from") });
  expect(await moved.stop()).toBe(0);
  expect(node.content()).toEqual(installed);
  api.answer = json(404, {});
  expect(await old.stop()).toBe(0);
  expect(node.content()).toEqual(before);
});
