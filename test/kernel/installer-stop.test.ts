import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Answer, ApiStub, json } from "../support/api-server";
import { buildPrograms } from "../support/program";
import { until } from "../support/until";
import { TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge"}\n]}\n';
const DAEMON_SET = "/apis/apps/v1/namespaces/linkerd-cni/daemonsets/linkerd-cni";

const thereIs = (metadata: object): Answer => json(200, { metadata, spec: {}, status: { desiredNumberScheduled: 1 } });
const pathOf = ({ url = "" }: { readonly url?: string | undefined }) => url.split("?")[0] ?? "";

/** The node's files, without the journal's note that the installer has left. */
function content() {
  const files = Object.entries(node.content());
  return Object.fromEntries(files.map(([name, text]) => [name, text.replace(/,\n {2}"left": true/, "")]));
}

/** The API server's answer about our DaemonSet when the installer stops, and the result for the node. */
const table: readonly (readonly [string, Answer, "removed" | "left"])[] = [
  ["a rollout, a restart, an eviction: the DaemonSet is there", thereIs({ name: "linkerd-cni" }), "left"],
  ["the DaemonSet is deleted", json(404, {}), "removed"],
];

let api: ApiStub;
let node: TestNode;
beforeAll(buildPrograms);
beforeEach(async () => {
  api = await ApiStub.start(json(404, {}));
  node = new TestNode({ "10-k.conflist": LIST });
  writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
});
afterEach(() => {
  api.close();
  node.delete();
});

function start(more: Readonly<Record<string, string>> = {}) {
  return node.start({
    UNINSTALL_ON_STOP: "auto",
    KUBERNETES_SERVICE_PORT: String(api.port),
    POD_NAMESPACE: "linkerd-cni",
    POD_NAME: "linkerd-cni-x7k2p",
    ...more,
  });
}

test.each(table)("on SIGTERM, when %s", async (_, answer, outcome) => {
  const before = node.content();
  const installer = start();
  await installer.says("ends in our stanza");
  const installed = node.content();
  api.answer = answer;
  expect(await installer.stop()).toBe(0);
  expect(api.requests).toContain(DAEMON_SET);
  expect(content()).toEqual(outcome === "removed" ? before : installed);
});

test("CRI-O, which calls the plugin for old pods, keeps its executable", async () => {
  const nodeInfo = { containerRuntimeVersion: "cri-o://1.30.2" };
  api.answer = (request, response) => {
    const answer = pathOf(request) === "/api/v1/nodes/node-1" ? json(200, { status: { nodeInfo } }) : json(404, {});
    answer(request, response);
  };
  const before = node.content();
  const installer = start({ NODE_NAME: "node-1" });
  await installer.says("cri-o://1.30.2 passes pod annotations");
  await installer.says("ends in our stanza");
  expect(await installer.stop()).toBe(0);
  const left = Object.entries(node.content()).filter(([name]) => !name.startsWith("bin/"));
  expect(Object.fromEntries(left)).toEqual(before);
  expect(node.answers()).toBe(true);
  expect(node.read("10-k.conflist")).toBe(LIST);
});

test("a runtime unknown at the start is requested again, and treated as CRI-O while unknown", async () => {
  const nodeInfo = { containerRuntimeVersion: "containerd://1.7.2" };
  let told = false;
  api.answer = (request, response) => {
    const isNode = told && pathOf(request) === "/api/v1/nodes/node-1";
    (isNode ? json(200, { status: { nodeInfo } }) : json(404, {}))(request, response);
  };
  const before = node.content();
  const unknown = start({ NODE_NAME: "node-1" });
  await unknown.says("ends in our stanza");
  expect(await unknown.stop()).toBe(0);
  expect(node.content()["bin/linkerd-cni"]).toBeDefined();
  expect(node.read("10-k.conflist")).toBe(LIST);
  const known = start({ NODE_NAME: "node-1" });
  await known.says("ends in our stanza");
  told = true;
  expect(await known.stop()).toBe(0);
  expect(node.content()).toEqual(before);
});

test("a second signal does not interrupt the removal", async () => {
  const before = node.content();
  const installer = start();
  await installer.says("ends in our stanza");
  api.answer = (request, response) => void setTimeout(() => json(404, {})(request, response), 500);
  const ended = installer.stop();
  setTimeout(() => void installer.stop("SIGTERM"), 200);
  expect(await ended).toBe(0);
  expect(node.content()).toEqual(before);
});

test("an installer that is stopped before it began does not begin", async () => {
  const before = node.content();
  api.answer = () => void installer.stop();
  const installer = start();
  expect(await installer.end()).toBe(0);
  expect(node.content()).toEqual(before);
});

test("continues, and removes in order, if its log is closed", async () => {
  const before = node.content();
  const installer = start({ UNINSTALL_ON_STOP: "always" });
  await installer.says("ends in our stanza");
  installer.deafen();
  node.write("10-k.conflist", LIST);
  await until("the chain", () => node.isChained("10-k.conflist"));
  expect(await installer.stop()).toBe(0);
  expect(node.content()).toEqual(before);
});
