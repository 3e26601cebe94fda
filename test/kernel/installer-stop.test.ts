import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, ApiStub, json } from "../support/api-server";
import { buildInstaller, TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge"}\n]}\n';
const DAEMON_SET = "/apis/apps/v1/namespaces/linkerd-cni/daemonsets/linkerd-cni";

const thereIs = (metadata: object): Answer => json(200, { metadata, spec: {}, status: { desiredNumberScheduled: 1 } });
const silence: Answer = () => undefined;

/** What the API server says about our DaemonSet when the installer is stopped, and what becomes of the node. */
const table: readonly (readonly [string, Answer, "removed" | "left"])[] = [
  ["a rollout, a restart, an eviction: the DaemonSet is there", thereIs({ name: "linkerd-cni" }), "left"],
  ["the DaemonSet is being deleted", thereIs({ deletionTimestamp: "2026-01-01T00:00:00Z" }), "removed"],
  ["the DaemonSet is deleted", json(404, { code: 404 }), "removed"],
  ["the token is not accepted any more", json(401, { code: 401 }), "removed"],
  ["the role is deleted", json(403, { code: 403 }), "removed"],
  ["the API server fails", json(500, { code: 500 }), "left"],
  ["the API server sheds load", json(429, { code: 429 }), "left"],
  ["the API server answers nonsense", (_, response) => void response.writeHead(200).end("<html>"), "left"],
  ["the API server hangs", silence, "left"],
];

jest.setTimeout(60_000);

let api: ApiStub;
let node: TestNode;
beforeAll(buildInstaller);
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
    DAEMONSET_NAME: "linkerd-cni",
    ...more,
  });
}

test.each(table)("on SIGTERM, when %s", async (_, answer, outcome) => {
  const before = node.content();
  const installer = start();
  await installer.says("ends in our stanza");
  const installed = node.content();
  api.answer = answer;
  const since = performance.now();
  expect(await installer.stop()).toBe(0);
  expect(performance.now() - since).toBeLessThan(10_000);
  expect(api.requests).toContain(DAEMON_SET);
  expect(node.content()).toEqual(outcome === "removed" ? before : installed);
});

test("on SIGTERM of a pod that was deleted by force, everything is left: its token alone is refused", async () => {
  const claims = { sub: "system:serviceaccount:linkerd-cni:linkerd-cni-plugin", iat: 0, exp: 2 ** 40 };
  const minted = `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;
  let deleted = false;
  api.answer = (request, response) => {
    const own = request.headers.authorization === "Bearer token";
    const token = request.url?.endsWith("/token") ? { status: { token: minted } } : {};
    json(own && deleted ? 401 : 200, token)(request, response);
  };
  const installer = start({ PLUGIN_SERVICE_ACCOUNT: "linkerd-cni-plugin", NODE_NAME: "node-1" });
  await installer.says("ends in our stanza");
  const installed = node.content();
  deleted = true;
  expect(await installer.stop()).toBe(0);
  expect(installer.log).toContain("our pod alone is deleted");
  expect(node.content()).toEqual(installed);
});

test.each([
  ["of a deleted pod", "removed", { deletionTimestamp: "2026-01-01T00:00:00Z" }],
  ["of its container alone", "left", {}],
])("on SIGTERM %s, where the DaemonSet wants this node no more, all is %s", async (_, outcome, metadata) => {
  const spec = { template: { spec: { nodeSelector: { pool: "mesh" } } } };
  const nodeInfo = { containerRuntimeVersion: "containerd://2.0.0" };
  const objects: Readonly<Record<string, object>> = {
    [DAEMON_SET]: { metadata: {}, spec },
    "/api/v1/nodes/node-1": { metadata: { labels: { pool: "batch" } }, status: { nodeInfo } },
    "/api/v1/namespaces/linkerd-cni/pods/linkerd-cni-x1": { metadata },
  };
  api.answer = (request, response) => json(200, objects[request.url ?? ""] ?? {})(request, response);
  const before = node.content();
  const installer = start({ NODE_NAME: "node-1", POD_NAME: "linkerd-cni-x1" });
  await installer.says("ends in our stanza");
  const installed = node.content();
  expect(await installer.stop()).toBe(0);
  const removed = outcome === "removed";
  expect(installer.log.includes("wants this node no more, by its nodeSelector or nodeAffinity")).toBe(removed);
  expect(node.content()).toEqual(removed ? before : installed);
});

test("on SIGTERM, when the API server is down, everything is left", async () => {
  const installer = start();
  await installer.says("ends in our stanza");
  const installed = node.content();
  api.close();
  expect(await installer.stop()).toBe(0);
  expect(node.content()).toEqual(installed);
});

test("in a rollout, the old installer leaves what the new one has installed, even when it may not ask any more", async () => {
  const before = node.content();
  const old = start();
  await old.says("ends in our stanza");
  const successor = start({
    CNI_NETWORK_CONFIG: JSON.stringify({
      type: "linkerd-cni",
      kubernetes: { kubeconfig: "__KUBECONFIG_FILEPATH__" },
      release: 2,
    }),
  });
  await successor.says("ends in our stanza");
  await old.says("has installed since");
  const installed = node.content();
  expect(installed["net.d/10-k.conflist"]).toContain('"release": 2');
  api.answer = json(403, {});
  expect(await old.stop()).toBe(0);
  expect(node.content()).toEqual(installed);
  expect(await successor.stop()).toBe(0);
  expect(node.content()).toEqual(before);
});

test("CRI-O, which calls the plugin for old pods, keeps its executable", async () => {
  const nodeInfo = { containerRuntimeVersion: "cri-o://1.30.2" };
  api.answer = (request, response) => {
    const answer = request.url === "/api/v1/nodes/node-1" ? json(200, { status: { nodeInfo } }) : json(404, {});
    answer(request, response);
  };
  const before = node.content();
  const installer = start({ NODE_NAME: "node-1" });
  await installer.says("cri-o://1.30.2 passes pod annotations");
  expect(await installer.stop()).toBe(0);
  const left = Object.entries(node.content()).filter(([name]) => !name.startsWith("bin/"));
  expect(Object.fromEntries(left)).toEqual(before);
  expect(node.answers()).toBe(true);
  expect(node.read("10-k.conflist")).toBe(LIST);
});

test("a runtime that could not be told at the start is asked for again, and taken for CRI-O while it is unknown", async () => {
  const nodeInfo = { containerRuntimeVersion: "containerd://1.7.2" };
  let told = false;
  api.answer = (request, response) => {
    const isNode = told && request.url === "/api/v1/nodes/node-1";
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
  api.answer = (_, response) => void setTimeout(() => response.writeHead(404).end("{}"), 500);
  const ended = installer.stop();
  setTimeout(() => void installer.stop("SIGTERM"), 200);
  expect(await ended).toBe(0);
  expect(node.content()).toEqual(before);
});

test("an installer that is stopped before it began does not begin", async () => {
  const before = node.content();
  api.answer = silence;
  const installer = start({ PLUGIN_SERVICE_ACCOUNT: "linkerd-cni-plugin" });
  while (api.requests.length === 0) await sleep(10);
  expect(await installer.stop()).toBe(0);
  expect(node.content()).toEqual(before);
});

test("an installer that is stopped before it began removes what the one before it left behind, killed", async () => {
  const before = node.content();
  const killed = start();
  await killed.says("ends in our stanza");
  await killed.stop("SIGKILL");
  expect(node.content()).not.toEqual(before);
  let asked = false;
  api.answer = (request, response) => {
    asked ||= request.url?.endsWith("/token") === true;
    if (request.url === DAEMON_SET) json(404, {})(request, response);
  };
  const installer = start({ PLUGIN_SERVICE_ACCOUNT: "linkerd-cni-plugin" });
  while (!asked) await sleep(10);
  expect(await installer.stop()).toBe(0);
  expect(installer.log).not.toContain("ends in our stanza");
  expect(node.content()).toEqual(before);
});

test.each(["always", "never"])("UNINSTALL_ON_STOP=%s needs no API server", async (policy) => {
  const before = node.content();
  const installer = start({ UNINSTALL_ON_STOP: policy });
  await installer.says("ends in our stanza");
  const installed = node.content();
  expect(await installer.stop()).toBe(0);
  expect(api.requests).not.toContain(DAEMON_SET);
  expect(node.content()).toEqual(policy === "always" ? before : installed);
});

test("a bad environment is named in full, and nothing is changed", async () => {
  const before = node.content();
  const installer = start({ KUBERNETES_SERVICE_PORT: "many", UNINSTALL_ON_STOP: "maybe", CNI_NETWORK_CONFIG: "" });
  expect(await installer.end()).toBe(1);
  expect(installer.log).toContain('KUBERNETES_SERVICE_PORT "many" is not a number from 0 to 65535');
  expect(installer.log).toContain('UNINSTALL_ON_STOP "maybe" is not one of auto, always, never');
  expect(installer.log).toContain("neither CNI_NETWORK_CONFIG nor CNI_NETWORK_CONFIG_FILE is set");
  expect(node.content()).toEqual(before);
});

test("goes on, and removes in order, when nobody reads its log any more", async () => {
  const before = node.content();
  const installer = start({ UNINSTALL_ON_STOP: "always" });
  await installer.says("ends in our stanza");
  installer.deafen();
  node.write("10-k.conflist", LIST);
  for (let tries = 0; !node.isChained("10-k.conflist") && tries < 100; tries += 1) await sleep(50);
  expect(node.isChained("10-k.conflist")).toBe(true);
  expect(await installer.stop()).toBe(0);
  expect(node.content()).toEqual(before);
});
