import { PodEvents } from "../../../installer/api/pod-events";
import { httpsTransport } from "../../../kubernetes/transport";
import { ApiStub, json } from "../../support/api-server";

let api: ApiStub;
let posted: { metadata: { name: string; namespace: string }; reason: string; regarding: object; note: string }[];
let log: string[];
let status: number;
let time: number;

beforeEach(async () => {
  [posted, log, status, time] = [[], [], 201, Date.parse("2026-01-01T00:00:00Z")];
  api = await ApiStub.start((request, response) => {
    const name = request.url?.split("/").at(-1);
    if (request.method === "GET") {
      const found = name !== "gone";
      return json(found ? 200 : 404, { metadata: { name, uid: `uid-${name}` } })(request, response);
    }
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      posted.push(JSON.parse(body));
      json(status, status === 409 ? { reason: "AlreadyExists" } : {})(request, response);
    });
  });
});

afterEach(() => api.close());

function podEvents() {
  const write = (message: string) => void log.push(message);
  return new PodEvents({
    connect: () => httpsTransport({ host: "127.0.0.1", port: api.port, ca: api.ca, token: "secret" }),
    instance: "node-1",
    log: { trace: write, debug: write, info: write, warn: write, error: write },
    clock: { now: () => time, date: () => new Date(time), random: () => 1 },
  });
}

const failed = (pod: string, error = "EPERM") => ({
  ...{ time: new Date(time).toISOString(), verb: "NRI", pod, code: 101, error },
});

test("a pod that is retried has one Event in ten minutes", async () => {
  const events = podEvents();
  for (let tries = 0; tries < 5; tries++) {
    events.take(failed("shop/cart", `EPERM, try ${tries}`));
    await events.publish();
    time += 15_000;
  }
  expect(posted).toEqual([
    expect.objectContaining({
      apiVersion: "events.k8s.io/v1",
      type: "Warning",
      action: "Redirecting",
      reason: "LinkerdCNIRedirectFailed",
      note: "EPERM, try 0",
      eventTime: "2026-01-01T00:00:00.000000Z",
      reportingController: "linkerd-cni",
      reportingInstance: "node-1",
      regarding: { apiVersion: "v1", kind: "Pod", namespace: "shop", name: "cart", uid: "uid-cart" },
    }),
  ]);
  time += 10 * 60_000;
  await events.publish();
  events.take(failed("shop/cart"));
  await events.publish();
  expect(posted).toHaveLength(2);
  expect(new Set(posted.map(({ metadata }) => metadata.name)).size).toBe(2);
});

test("an Event's name and note are within the API's limits, in bytes", async () => {
  const events = podEvents();
  // Cut after 230 characters it would end in a dash, which the API refuses before the dot.
  events.take(failed(`shop/${"w".repeat(248)}-rest`, "é".repeat(1_000)));
  await events.publish();
  expect(posted.map(({ metadata }) => metadata.name.replace(/[.][^.]+$/, ""))).toEqual([
    expect.stringMatching(/^w{200,}$/),
  ]);
  expect(posted.map(({ note }) => Buffer.byteLength(note))).toEqual([1_024]);
});

test.each(["-", ".", "---"])("no part of an Event's name ends in %j", async (end) => {
  const events = podEvents();
  for (let length = 200; length < 253; length++) events.take(failed(`shop/${"w".repeat(length)}${end}rest`));
  while (posted.length < 53) await events.publish();
  for (const { metadata } of posted) {
    expect(metadata.name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
  }
});

test("a flood is published slowly, and the queue is limited", async () => {
  const events = podEvents();
  for (let pod = 0; pod < 5_000; pod++) events.take(failed(`shop/pod-${pod}`));
  await events.publish();
  expect(posted).toHaveLength(10);
  for (let rounds = 0; rounds < 20; rounds++) await events.publish();
  expect(posted).toHaveLength(100);
});

test("an Event about a deleted pod is dropped, and a refused one is logged", async () => {
  const events = podEvents();
  status = 403;
  events.take(failed("shop/gone"));
  events.take(failed("shop/cart"));
  await events.publish();
  await events.publish();
  expect(posted).toHaveLength(1);
  expect(log).toEqual(["Event LinkerdCNIRedirectFailed on pod shop/cart was refused: 403"]);
});

test("an Event that cannot be sent waits", async () => {
  const events = podEvents();
  events.take(failed("shop/cart"));
  const { answer } = api;
  api.answer = (request) => void request.socket.destroy();
  await events.publish();
  expect(posted).toEqual([]);
  api.answer = answer;
  time += 5_000;
  await events.publish();
  expect(posted).toHaveLength(1);
});

test.each([
  ["GET", 401],
  ["GET", 429],
  ["GET", 503],
  ["POST", 401],
  ["POST", 429],
  ["POST", 500],
])("an Event waits after a %s that is answered with %i, and is published later", async (method, code) => {
  const events = podEvents();
  events.take(failed("shop/cart"));
  const { answer } = api;
  api.answer = (request, response) => (request.method === method ? json(code, {}) : answer)(request, response);
  await events.publish();
  const asked = api.requests.length;
  api.answer = answer;
  time += 4_999;
  await events.publish();
  expect(api.requests).toHaveLength(asked);
  time += 1;
  await events.publish();
  expect(posted).toHaveLength(1);
  expect(log).toEqual([expect.stringMatching(`^Events wait: .*: ${code}: `)]);
});

test("Events of one namespace that are refused do not hold up others", async () => {
  const events = podEvents();
  for (let pod = 0; pod < 50; pod++) events.take(failed(`limited/pod-${pod}`));
  for (const name of ["cart", "web"]) events.take(failed(`shop/${name}`));
  const { answer } = api;
  api.answer = (request, response) => (request.url?.includes("/limited/") ? json(429, {}) : answer)(request, response);
  await events.publish();
  expect(posted.map(({ regarding }) => regarding)).toEqual([
    expect.objectContaining({ name: "cart" }),
    expect.objectContaining({ name: "web" }),
  ]);
  expect(api.requests.filter((path) => path.includes("/limited/"))).toHaveLength(1);
  // Next is another Event of that namespace, since the first may be the only one that is refused.
  await events.publish();
  expect(api.requests.at(-1)).toContain("/limited/pods/pod-1");
});

test("an Event that is refused for ten minutes is dropped", async () => {
  const events = podEvents();
  const { answer } = api;
  api.answer = json(429, {});
  for (let pod = 0; pod < 100; pod++) events.take(failed(`limited/pod-${pod}`));
  await events.publish();
  time += 10 * 60_000;
  api.answer = answer;
  const asked = api.requests.length;
  await events.publish();
  expect(api.requests).toHaveLength(asked);
  expect(log.at(-1)).toBe("Event limited/pod-0 LinkerdCNIRedirectFailed could not be published: EPERM");
  events.take(failed("shop/cart"));
  await events.publish();
  expect(posted).toHaveLength(1);
});

const mended = (pod: string, at: number) => ({
  time: new Date(at).toISOString(),
  verb: "NRI",
  pod,
  decision: "redirect",
});

test("calls of the plugin have no Event: the kubelet publishes their error", async () => {
  const events = podEvents();
  events.take({ ...failed("shop/cart"), verb: "ADD" });
  events.take(mended("shop/web", time));
  await events.publish();
  expect(posted.map(({ reason }) => reason)).toEqual(["LinkerdCNIRedirectMended"]);
});

test("recent actions of the NRI plugin are published, and known to the API server the next time", async () => {
  for (const answer of [201, 409]) {
    status = answer;
    const events = podEvents();
    events.takeEarlier([
      { ...failed("shop/cart"), verb: "ADD" },
      mended("shop/old", time - 601_000),
      mended("shop/web", time - 599_000),
    ]);
    await events.publish();
  }
  expect(posted.map(({ metadata }) => metadata.name)).toEqual(
    Array(2).fill(`web.nri-${(time - 599_000).toString(16)}`),
  );
  expect(log).toEqual([]);
});
