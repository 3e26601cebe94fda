import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { httpsStreams } from "../../../kubernetes/transport";
import { type Notice, watch } from "../../../kubernetes/watch";
import { type Answer, json } from "../../support/api-server";
import { fastClock } from "../../support/controllers";
import { meshedPod } from "../../support/meshed-pod";
import { type PodLike, PodsApi } from "../../support/pods-api";
import { until } from "../../support/until";

let api: PodsApi;
let stop: AbortController;
const problems: string[] = [];

beforeEach(async () => {
  api = await PodsApi.start();
  stop = new AbortController();
  problems.length = 0;
});

afterEach(() => {
  stop.abort();
  api.close();
});

const source = { path: "/api/v1/pods", labelSelector: "linkerd.io/control-plane-ns" };

/** Watches pods and hands each notice on. */
async function follow(take: (notice: Notice<PodLike>) => void): Promise<void> {
  const clock = fastClock(50);
  const { signal } = stop;
  const tools = {
    open: httpsStreams(() => api.server),
    now: clock.now,
    random: clock.random,
    sleep: (ms: number) => clock.sleep(ms, signal),
    troubled: (problem: string) => problems.push(problem),
    signal,
  };
  for await (const notice of watch<PodLike>(source, tools)) take(notice);
}

/** Watches, and notes what is told as words. */
function notes(): string[] {
  const seen: string[] = [];
  void follow((notice) => {
    seen.push("object" in notice ? `${notice.type} ${notice.object.metadata.name}` : notice.type);
  });
  return seen;
}

const lists = () => api.count(/^\/api\/v1\/pods\?(?!.*watch=)/);
const watches = () => api.count(/watch=true/);

test("lists first, then reports changes", async () => {
  const pod = meshedPod("a");
  api.put(pod);
  const seen = notes();
  await until("the watch", () => api.watching === 1);
  api.put(pod);
  api.put(meshedPod("b"));
  api.remove(pod);
  await until("all changes", () => seen.length === 6);
  expect(seen).toEqual(["LISTING", "LISTED a", "SYNCED", "MODIFIED a", "ADDED b", "DELETED a"]);
  expect(api.stub.requests[0]).toContain("resourceVersion=0");
  expect(api.stub.requests[1]).toMatch(/allowWatchBookmarks=true&resourceVersion=101&timeoutSeconds=\d{3}$/);
});

test("continues after a broken connection without another list", async () => {
  const seen = notes();
  await until("the watch", () => api.watching === 1);
  api.put(meshedPod("a"));
  await until("a", () => seen.includes("ADDED a"));
  api.cut();
  api.put(meshedPod("b"));
  await until("b", () => seen.includes("ADDED b"));
  expect(lists()).toBe(1);
  expect(seen.filter((each) => each === "ADDED a")).toHaveLength(1);
});

test.each(["list", "watch"])("a refused %s ends its connection", async (verb) => {
  const { answer } = api.stub;
  api.stub.answer = (request, response) => {
    const isWatch = request.url?.includes("watch=true") ?? false;
    if (isWatch === (verb === "watch")) json(403, { kind: "Status", reason: "Forbidden" })(request, response);
    else answer(request, response);
  };
  notes();
  await until("refusals", () => problems.length >= 10);
  await until("the end of their connections", async () => (await api.stub.openConnections()) <= 1);
});

test("a bookmark updates the resource version to continue from", async () => {
  notes();
  await until("the watch", () => api.watching === 1);
  api.put(meshedPod("not-selected", { metadata: { labels: {} } }));
  // A busy machine may not have read the bookmark yet when the connection ends.
  await until("a watch from the bookmark's version", async () => {
    const before = watches();
    api.bookmark();
    await new Promise((resolve) => setTimeout(resolve, 50));
    api.cut();
    await until("the next watch", () => watches() > before);
    return api.stub.requests.at(-1)?.includes("resourceVersion=101") === true;
  });
});

test.each([
  ["when it asks", () => api.cut(), () => api.compact()],
  ["in the middle", () => undefined, () => api.expire()],
])("lists again if the resource version is too old: %s", async (_, before, expire) => {
  const seen = notes();
  await until("the watch", () => api.watching === 1);
  api.put(meshedPod("a"));
  api.put(meshedPod("b"));
  await until("both", () => seen.includes("ADDED b"));
  before();
  api.remove([...api.pods.values()][0] as PodLike);
  expire();
  await until("the second list", () => seen.filter((each) => each === "SYNCED").length === 2);
  expect(seen.slice(seen.lastIndexOf("LISTING"))).toEqual(["LISTING", "LISTED b", "SYNCED"]);
  const lists = api.stub.requests.filter((path) => !path.includes("watch="));
  expect(lists.at(-1)).toMatch(/[?&]resourceVersion=\d+&resourceVersionMatch=NotOlderThan$/);
  // With a limit, most API servers read such a list from their database.
  expect(lists.at(-1)).not.toContain("limit=");
});

const tooLarge = { reason: "Timeout", details: { causes: [{ reason: "ResourceVersionTooLarge" }] } };

test.each([
  ["an answer of 400", json(400, { message: "invalid resource version" })],
  ["an answer that its version is too new", json(504, tooLarge)],
  ["an ERROR event of 500", (_, response) => void response.end('{"type":"ERROR","object":{"code":500}}\n')],
] as readonly [string, Answer][])("lists again after %s to a watch", async (_, refusal) => {
  const { answer } = api.stub;
  api.stub.answer = (request, response) => {
    const isWatch = request.url?.includes("watch=true");
    if (isWatch) api.stub.answer = answer;
    (isWatch ? refusal : answer)(request, response);
  };
  const seen = notes();
  await until("the second list", () => seen.filter((each) => each === "SYNCED").length === 2);
  await until("the watch", () => api.watching === 1);
});

test("does not list again after a proxy's 504 to a watch", async () => {
  const seen = notes();
  await until("the watch", () => api.watching === 1);
  const { answer } = api.stub;
  api.stub.answer = (request, response) => {
    api.stub.answer = answer;
    json(504, { message: "upstream request timeout" })(request, response);
  };
  api.cut();
  api.put(meshedPod("a"));
  await until("a", () => seen.includes("ADDED a"));
  expect(problems.some((each) => each.includes("504"))).toBe(true);
  expect(lists()).toBe(1);
});

test("lists again when an unknown resource becomes known", async () => {
  const seen = notes();
  await until("the watch", () => api.watching === 1);
  const pod = meshedPod("a");
  api.put(pod);
  await until("a", () => seen.includes("ADDED a"));
  const { answer } = api.stub;
  api.stub.answer = json(404, { message: "no such resource" });
  api.cut();
  await until("two refusals", () => problems.filter((each) => each.includes("404: no such resource")).length >= 2);
  expect(problems.map((each) => each.split(" ")[0])).toEqual(expect.arrayContaining(["watch", "list"]));
  api.remove(pod);
  api.stub.answer = answer;
  await until("the second list", () => seen.filter((each) => each === "SYNCED").length === 2);
  expect(seen.slice(-2)).toEqual(["LISTING", "SYNCED"]);
});

test("a refusal is reported with its reason", async () => {
  const { server } = api;
  Object.defineProperty(api, "server", { value: { ...server, token: "other" } });
  notes();
  await until("the problem", () => problems.length > 0);
  expect(problems[0]).toBe("list of /api/v1/pods: 401: Unauthorized");
});

/** Bytes in use after all that can go has gone. */
function heapInUse(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  return process.memoryUsage().heapUsed;
}

test("does not grow over 100,000 changes", async () => {
  const pod = meshedPod("a", { metadata: { annotations: { filler: "x".repeat(500) } } });
  let seen = 0;
  void follow(() => {
    seen += 1;
  });
  await until("the watch", () => api.watching === 1);
  const batch = async (size: number) => {
    const wanted = seen + size;
    for (let sent = 0; sent < size; sent += 500) {
      for (let index = 0; index < 500; index++) api.put(pod);
      api.compact();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until("a batch", () => seen >= wanted);
  };
  await batch(20_000);
  const before = heapInUse();
  await batch(80_000);
  expect(seen).toBeGreaterThanOrEqual(100_000);
  // All of it would be 80 MB.
  expect(heapInUse() - before).toBeLessThan(10e6);
});
