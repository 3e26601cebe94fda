import type { ServerResponse } from "node:http";
import { Informer, type InformerDeps } from "../../../kubernetes/informer";
import { resource, resources } from "../../../kubernetes/resources";
import { httpsStreams } from "../../../kubernetes/transport";
import type { PodObject } from "../../../kubernetes/types";
import { systemClock } from "../../../process/clock";
import { createLog } from "../../../process/log";
import { ApiStub, json } from "../../support/api-server";
import { until } from "../../support/until";

let api: ApiStub;
let stop: AbortController;
let running: Promise<void>;
/** The watch that is open. */
let watching: ServerResponse | undefined;
const failed: string[] = [];
const lines: string[] = [];

const pod = (name: string): PodObject => ({ metadata: { namespace: "shop", name, resourceVersion: "1" } });

beforeEach(async () => {
  [failed.length, lines.length, watching] = [0, 0, undefined];
  stop = new AbortController();
  api = await ApiStub.start((request, response) => {
    if (request.url?.includes("watch=true") !== true) {
      return json(200, { metadata: { resourceVersion: "1" }, items: [pod("a"), pod("b")] })(request, response);
    }
    watching = response.writeHead(200);
    response.flushHeaders();
  });
});
afterEach(async () => {
  stop.abort();
  api.close();
  await running;
});

function deps(): InformerDeps {
  const server = () => ({ host: "127.0.0.1", port: api.port, ca: api.ca, token: "token" });
  // Pauses are short here; what is asked for is noted by the log.
  const clock = { ...systemClock, sleep: (_: number, signal?: AbortSignal) => systemClock.sleep(5, signal) };
  const log = createLog("info", "plain", (line) => lines.push(line));
  return { open: httpsStreams(server), clock, log, failed: (which) => failed.push(which), signal: stop.signal };
}

test("a store contains the selected objects, and follows their changes", async () => {
  const informer = new Informer(
    { resource: resources.pods, namespace: "shop", labelSelector: "a=b", view: ({ metadata }) => metadata?.name },
    deps(),
  );
  running = informer.run();
  await until("the list", () => informer.store.synced && watching !== undefined);
  expect([...informer.store.keys()]).toEqual(["shop/a", "shop/b"]);
  watching?.write(`${JSON.stringify({ type: "DELETED", object: pod("a") })}\n`);
  watching?.write(`${JSON.stringify({ type: "ADDED", object: pod("c") })}\n`);
  await until("the changes", () => informer.store.get("shop/c") === "c");
  expect([...informer.store.values()]).toEqual(["b", "c"]);
  expect(api.requests.every((url) => url.startsWith("/api/v1/namespaces/shop/pods?labelSelector=a%3Db&"))).toBe(true);
});

test("after 410 Gone it lists again, and drops deleted objects", async () => {
  const changed: string[] = [];
  const informer = new Informer(
    { resource: resources.pods, view: () => true, changed: (key) => changed.push(key) },
    deps(),
  );
  running = informer.run();
  await until("the watch", () => watching !== undefined);
  const { answer } = api;
  api.answer = (request, response) =>
    request.url?.includes("watch=true") === true
      ? answer(request, response)
      : json(200, { metadata: { resourceVersion: "9" }, items: [pod("b")] })(request, response);
  watching?.end(`${JSON.stringify({ type: "ERROR", object: { code: 410 } })}\n`);
  await until("the second list", () => informer.store.size === 1);
  expect(changed).toEqual(["shop/a", "shop/b", "shop/b", "shop/a"]);
  expect(failed).toEqual(["pods"]);
  expect(lines).toEqual([expect.stringMatching(/watch of \/api\/v1\/pods: 410.*resource=pods\n$/)]);
});

test("a resource unknown to the API server is requested again, and is not a failure", async () => {
  api.answer = json(404, { message: "the server could not find the requested resource" });
  let unknown = 0;
  const informer = new Informer(
    {
      resource: resource<PodObject>(
        "k8s.cni.cncf.io/v1",
        "NetworkAttachmentDefinition",
        "network-attachment-definitions",
      ),
      view: () => true,
      unknown: () => {
        unknown += 1;
      },
    },
    deps(),
  );
  running = informer.run();
  await until("two attempts", () => unknown >= 2);
  expect([failed, lines, informer.store.synced]).toEqual([[], [], false]);
});
