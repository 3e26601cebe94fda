import { appendFileSync, renameSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiReach } from "../../cni/contract";
import { ApiStub, json } from "../support/api-server";
import { get as getAt } from "../support/http";
import { buildPrograms } from "../support/program";
import { until } from "../support/until";
import { type Installer, TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge"}\n]}\n';
const PORT = 19_872;
const POD = "/api/v1/namespaces/linkerd-cni/pods/linkerd-cni-x7k2p";

let api: ApiStub;
let node: TestNode;
let installer: Installer;
/** The API server's answers by path without its query; otherwise 404. */
let answers: Record<string, (request: IncomingMessage) => [number, object]>;

beforeAll(buildPrograms);
beforeEach(async () => {
  answers = { [POD]: () => [200, {}] };
  api = await ApiStub.start((request, response) => {
    const [path = ""] = request.url?.split("?") ?? [];
    const [status, body] = answers[path]?.(request) ?? [404, {}];
    json(status, body)(request, response);
  });
  node = new TestNode({ "10-k.conflist": LIST });
  writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
  writeFileSync(join(node.binDir, "bridge"), "");
});
afterEach(async () => {
  await installer.stop("SIGKILL");
  api.close();
  node.delete();
});

function start(more: Readonly<Record<string, string>> = {}): void {
  installer = node.start({
    HEALTH_PORT: String(PORT),
    KUBERNETES_SERVICE_PORT: String(api.port),
    POD_NAMESPACE: "linkerd-cni",
    POD_NAME: "linkerd-cni-x7k2p",
    ...more,
  });
}

const get = (path: string) => getAt(PORT, path);

/** Waits until it answers so. @param text that its answer holds */
const answersReady = (status: number, text = "") =>
  until(`${status} ${text}`, async () => {
    const answer = await get("/ready");
    return answer.status === status && answer.text.includes(text);
  }).catch((error: Error) => {
    throw new Error(`the installer says:\n${installer.log}`, { cause: error });
  });

test("an installer that starts asks everything once, over one connection, which look-ups then use", async () => {
  const node1 = "/api/v1/nodes/node-1";
  answers[node1] = () => [200, {}];
  start({ NODE_NAME: "node-1", LOG_LEVEL: "debug" });
  await installer.says("looking pods up at");
  await installer.says("ends in our stanza");
  expect((await get("/ready")).status).toBe(200);
  expect(api.requests).toEqual([POD, `${node1}?resourceVersion=0`, `${POD}?resourceVersion=0`]);
  expect(api.handshakes).toBe(1);
});

test("ready when a pod that starts now is chained, and only then", async () => {
  start();
  await answersReady(200);
  expect(installer.log).toContain("ends in our stanza");
  expect(await get("/ready")).toEqual({
    status: 200,
    text: "ready\nchaining: edit: the node's container runtime is not known yet\n",
  });
  expect(await get("/live")).toEqual({ status: 200, text: "live\n" });
  expect((await get("/else")).status).toBe(404);
  expect((await get("/metrics")).text).toContain("linkerd_cni_ready 1");
  node.write("10-k.conflist", "{");
  await answersReady(503, "no valid CNI configuration");
  node.write("10-k.conflist", LIST);
  await answersReady(200);
});

test.each([
  [401, "does not accept this pod's token"],
  [403, "may not get pods"],
])("an API server that answers the plugin %i makes it unready, and is not asked at each probe", async (status, why) => {
  answers[POD] = () => [status, {}];
  start();
  await installer.says("ends in our stanza");
  await answersReady(503, why);
  const asked = () => api.requests.filter((path) => path === POD).length;
  const [before, begin] = [asked(), performance.now()];
  for (let round = 0; round < 100; round += 1) expect(await get("/ready")).toMatchObject({ status: 503 });
  const { text } = await get("/metrics");
  expect(text).toContain("linkerd_cni_ready 0");
  expect(text).toContain("linkerd_cni_chained 1");
  // It is asked again after half of three seconds or more.
  expect(asked() - before).toBeLessThanOrEqual(1 + (performance.now() - begin) / 1500);
});

test("a token that the API server refused for a while makes it ready again, without another token", async () => {
  answers[POD] = () => [401, {}];
  start();
  await installer.says("ends in our stanza");
  await answersReady(503);
  answers[POD] = () => [200, {}];
  // It is checked again within ten seconds, see installer/api/api-connection.test.ts.
  await answersReady(200);
});

describe("a proxy that the environment names", () => {
  let proxy: Server;
  let connections: number;
  beforeEach(async () => {
    connections = 0;
    proxy = createServer((socket) => {
      connections += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  });
  afterEach(() => proxy.close());

  test.each([
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NODE_USE_ENV_PROXY and HTTPS_PROXY",
  ])("%s, gets no request, and no token with it", async (names) => {
    const { port } = proxy.address() as AddressInfo;
    const value = (name: string) => (name === "NODE_USE_ENV_PROXY" ? "1" : `http://127.0.0.1:${port}`);
    start(Object.fromEntries(names.split(" and ").map((name) => [name, value(name)])));
    await installer.says("ends in our stanza");
    expect(connections).toBe(0);
  });
});

test("ready without a chain if Multus should call the plugin", async () => {
  start({ CHAINED: "false" });
  await installer.says("left alone: Multus has to call the plugin");
  await answersReady(200);
  expect(node.read("10-k.conflist")).toBe(LIST);
});

test("actions of the NRI plugin are published on the pods, also those before the installer started", async () => {
  const posted: string[] = [];
  const pods = ["web", "cart", "old"].map((name) => `/api/v1/namespaces/shop/pods/${name}`);
  for (const path of pods) answers[path] = () => [200, { metadata: { uid: path } }];
  answers["/apis/events.k8s.io/v1/namespaces/shop/events"] = (request) => {
    request.on("data", (chunk: Buffer) => {
      const { reason, type, regarding } = JSON.parse(chunk.toString());
      posted.push(`${type} ${reason} ${regarding.name}`);
    });
    return [201, {}];
  };
  const line = (pod: string, entry: object, time = new Date()) =>
    `${JSON.stringify({ time: time.toISOString(), verb: "NRI", pod: `shop/${pod}`, ...entry })}\n`;
  const mended = { decision: "redirect", mode: "native", reason: "the pod ran without rules" };
  const log = join(node.root, "plugin.log");
  writeFileSync(log, line("old", mended, new Date(0)) + line("web", mended));
  start({ CHAINED: "false", NRI_EVENTS: "true" });
  await installer.says("left alone: the NRI plugin redirects pods");
  appendFileSync(log, line("cart", { code: 100, error: "table linkerd-cni differs" }));
  await until("two Events", () => posted.length === 2);
  expect(posted.sort()).toEqual(["Normal LinkerdCNIRedirectMended web", "Warning LinkerdCNIRedirectNotMended cart"]);
  expect((await get("/metrics")).text).not.toMatch(/^linkerd_cni_plugin_calls_total\{/m);
});

test.each([
  ["containerd://2.1.4", 503],
  ["cri-o://1.32.1", 200],
])("with a broken configuration in front, a node with %s answers %i", async (containerRuntimeVersion, status) => {
  const NODE = "/api/v1/nodes/node-a";
  let known = false;
  answers[NODE] = () => (known ? [200, { status: { nodeInfo: { containerRuntimeVersion } } }] : [500, {}]);
  node.write("05-broken.conflist", '{"name":"k","plugins":[]}');
  start({ NODE_NAME: "node-a" });
  await installer.says("ends in our stanza");
  expect(installer.log).toContain('05-broken.conflist "plugins" is empty: skipped by CRI-O; containerd');
  await installer.stop("SIGKILL");
  known = true;
  start({ NODE_NAME: "node-a" });
  await installer.says("05-broken.conflist");
  await answersReady(status, status === 503 ? "05-broken.conflist" : "ready");
  expect((await get("/ready")).text.includes("05-broken.conflist")).toBe(status === 503);
  expect(node.isChained("10-k.conflist")).toBe(true);
});

test("while the API server does not answer checks, the Node is not requested", async () => {
  const NODE = "/api/v1/nodes/node-a";
  answers[NODE] = () => [200, { status: { nodeInfo: { containerRuntimeVersion: "containerd://2.1.4" } } }];
  const runtime = node.readAsRuntime();
  try {
    start({ NODE_NAME: "node-a" });
    await answersReady(200, "chaining: dropin");
    const { answer } = api;
    api.answer = (request, response) => (request.url?.startsWith(POD) ? undefined : answer(request, response));
    await installer.says(ApiReach.lost);
    const asked = (path: string) => api.requests.filter((each) => each.startsWith(path)).length;
    const checks = async (count: number) => {
      const before = asked(POD);
      await until(`${count} checks`, () => asked(POD) >= before + count);
    };
    await checks(1);
    const before = asked(NODE);
    await checks(1);
    expect(asked(NODE)).toBe(before);
    api.answer = answer;
    await until("the Node's request", () => asked(NODE) > before);
  } finally {
    runtime.close();
  }
});

test("the plugin's log is followed through a rotation, into the log and the metrics", async () => {
  const file = join(node.root, "plugin.log");
  const line = (entry: object) => appendFileSync(file, `${JSON.stringify(entry)}\n`);
  line({ verb: "ADD", pod: "before/start" });
  start();
  await installer.says("ends in our stanza");
  line({
    verb: "ADD",
    pod: "shop/cart",
    decision: "redirect",
    mode: "native",
    lookupMs: 4,
    rulesMs: 2,
    ms: 9,
    requests: 1,
  });
  await installer.says("pod=shop/cart");
  renameSync(file, `${file}.1`);
  line({ verb: "STATUS", ms: 3 });
  line({ verb: "ADD", pod: "shop/broken", code: 11, lookupMs: 5000 });
  await installer.says("error: plugin: verb=ADD pod=shop/broken code=11");
  expect(installer.log).not.toContain("before/start");
  const { text } = await get("/metrics");
  expect(text).toContain('linkerd_cni_plugin_calls_total{verb="ADD",decision="redirect",code=""} 1');
  expect(text).toContain('linkerd_cni_plugin_calls_total{verb="ADD",decision="",code="11"} 1');
  expect(text).toContain('linkerd_cni_plugin_lookup_seconds_bucket{le="0.005"} 1');
  expect(text).toContain("linkerd_cni_plugin_lookup_seconds_count 2");
  expect(text).toContain('linkerd_cni_plugin_seconds_sum{verb="ADD"} 0.009');
  expect(text).toContain('linkerd_cni_plugin_api_requests_count{verb="ADD"} 1');
});

test("a missing token makes the node unready, and the installer continues", async () => {
  start();
  await installer.says("ends in our stanza");
  writeFileSync(join(node.accountDir, "token"), "");
  for (let round = 0; round < 20; round += 1) {
    await get("/ready");
    await sleep(10);
  }
  await answersReady(503, "token");
  expect((await get("/metrics")).text).toContain("linkerd_cni_ready 0");
  writeFileSync(join(node.accountDir, "token"), "token");
  await answersReady(200);
});

test("a node that cannot reach the API server reports it, and stays ready", async () => {
  start();
  await answersReady(200);
  const unreached = /^linkerd_cni_api_server_reachable 0$/m;
  expect((await get("/metrics")).text).not.toMatch(unreached);
  const { port } = api;
  api.close();
  const address = `API server 127.0.0.1:${port}: connection refused`;
  await answersReady(200, `warning: this node cannot reach the API server: ${address}`);
  expect((await get("/metrics")).text).toMatch(unreached);
  await installer.says(`warn: this node cannot reach the API server: ${address}`);
});
