import { ApiUnreachable } from "./api-server";
import { KubernetesClient } from "./client";
import { resources } from "./resources";
import { ApiTooLarge, type OpenStream, type Transport } from "./transport";
import { watch } from "./watch";

const refused = () => new ApiUnreachable("127.0.0.1:1", "connect ECONNREFUSED");

async function* parts(body: string) {
  yield new TextEncoder().encode(body);
}

/** The pauses of a watch whose lists are answered by `list`, which may take time, and whose watches fail. */
async function pauses(count: number, list: (pass: (ms: number) => void) => ReturnType<OpenStream>) {
  const stop = new AbortController();
  const slept: number[] = [];
  let time = 0;
  const pass = (ms: number) => {
    time += ms;
  };
  const open: OpenStream = async (path) => {
    if (path.includes("watch=true")) throw refused();
    return list(pass);
  };
  const deps = {
    open,
    now: () => time,
    sleep: async (ms: number) => {
      if (slept.push(ms) === count) stop.abort();
    },
    random: () => 1,
    troubled: () => undefined,
    signal: stop.signal,
  };
  for await (const _ of watch({ path: "/api/v1/pods" }, deps));
  return slept;
}

test("the pauses grow while an API server does not answer, however long each attempt takes", async () => {
  const silent = async (pass: (ms: number) => void) => {
    pass(30_000);
    throw new ApiUnreachable("127.0.0.1:1", "no answer within 30000 ms");
  };
  expect(await pauses(4, silent)).toEqual([500, 1_000, 2_000, 4_000]);
});

test("they grow while it answers lists, slowly, and no watch", async () => {
  const list = async (pass: (ms: number) => void) => {
    pass(30_000);
    return { status: 200, parts: parts(JSON.stringify({ metadata: {}, items: [] })) };
  };
  expect(await pauses(4, list)).toEqual([500, 1_000, 2_000, 4_000]);
});

test("a watch lists page by page if the API server pages", async () => {
  const asked: string[] = [];
  const open: OpenStream = async (path) => {
    const query = new URLSearchParams(path.split("?")[1]);
    if (query.has("watch")) throw refused();
    asked.push(`${query.get("resourceVersion") ?? ""} ${query.get("continue") ?? ""}`.trim());
    const from = Number(query.get("continue") ?? 0);
    const items = [from, from + 1].map((at) => ({ metadata: { name: `pod-${at}` } }));
    const metadata = { resourceVersion: "7", ...(from < 4 ? { continue: String(from + 2) } : {}) };
    return { status: 200, parts: parts(JSON.stringify({ metadata, items })) };
  };
  const stop = new AbortController();
  const deps = {
    ...{ open, now: () => 0, sleep: async () => undefined, random: () => 1, troubled: () => undefined },
    signal: stop.signal,
  };
  const told: string[] = [];
  for await (const notice of watch({ path: "/api/v1/pods" }, deps)) {
    told.push("object" in notice ? (notice.object.metadata?.name ?? "") : notice.type);
    if (notice.type === "SYNCED") break;
  }
  expect(asked).toEqual(["0", "2", "4"]);
  expect(told).toEqual(["LISTING", "pod-0", "pod-1", "pod-2", "pod-3", "pod-4", "pod-5", "SYNCED"]);
});

describe("a list of a client whose answer is too large", () => {
  /** Answers pages of at most 10 objects, of 20 in all, and without pages if the cache is asked. */
  const large = (asked: string[]): Transport => {
    return async ({ path }) => {
      const query = new URLSearchParams(path.split("?")[1]);
      const limit = Number(query.get("limit"));
      asked.push(`${limit} ${query.get("resourceVersion") ?? "newest"} ${query.get("continue") ?? ""}`.trim());
      if (limit > 10 || query.get("resourceVersion") === "0") throw new ApiTooLarge("127.0.0.1:1", "too large");
      const from = Number(query.get("continue") ?? 0);
      const items = Array.from({ length: limit }, (_, at) => ({ metadata: { name: `pod-${from + at}` } }));
      const metadata = { resourceVersion: "7", ...(from + limit < 20 ? { continue: String(from + limit) } : {}) };
      return { status: 200, body: JSON.stringify({ metadata, items }) };
    };
  };

  test("is asked for in smaller pages", async () => {
    const seen: string[] = [];
    const client = new KubernetesClient(large(seen));
    expect(await client.list(resources.pods, { resourceVersion: "0" })).toHaveLength(24);
    expect(seen).toEqual(["500 0", "63 newest", "8 newest", "8 newest 8", "8 newest 16"]);
  });

  test("is an error where one object is too large", async () => {
    const send: Transport = async () => {
      throw new ApiTooLarge("127.0.0.1:1", "sent more than 8388608 bytes");
    };
    await expect(new KubernetesClient(send).list(resources.pods)).rejects.toThrow("sent more than 8388608 bytes");
  });
});
