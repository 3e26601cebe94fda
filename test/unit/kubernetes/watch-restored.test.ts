import type { ApiServer } from "../../../kubernetes/api-server";
import { httpsStreams, type OpenStream } from "../../../kubernetes/transport";
import { watch } from "../../../kubernetes/watch";
import { ApiStub, json } from "../../support/api-server";

/** Answers every watch that its version is too old. */
async function goneServer(): Promise<{ readonly address: ApiServer; close(): void }> {
  const stub = await ApiStub.start(json(410, { kind: "Status", reason: "Expired" }));
  return { address: { host: "127.0.0.1", port: stub.port, ca: stub.ca, token: "t" }, close: () => stub.close() };
}

const TOO_LARGE = { kind: "Status", reason: "Timeout", details: { causes: [{ reason: "ResourceVersionTooLarge" }] } };

test.each([
  ["have gone back", 504, TOO_LARGE],
  ["are others", 400, { kind: "Status", reason: "BadRequest", message: "invalid resource version" }],
])("if the server's versions %s, a list reads from the database", async (_, status, refusal) => {
  const stop = new AbortController();
  const asked: string[] = [];
  const answers = [
    { status: 200, body: JSON.stringify({ metadata: { resourceVersion: "900" }, items: [] }) },
    { status, body: JSON.stringify(refusal) },
    { status: 200, body: JSON.stringify({ metadata: { resourceVersion: "7" }, items: [] }) },
  ];
  const server = await goneServer();
  const watching = httpsStreams(() => server.address);
  async function* parts(body: string) {
    yield Buffer.from(body);
  }
  const open: OpenStream = async (path, limits) => {
    const query = new URL(path, "https://a").searchParams;
    if (query.has("watch")) return watching(path, limits);
    asked.push(query.get("resourceVersion") ?? "none");
    const answer = answers[asked.length - 1] ?? { status: 500, body: "" };
    return { status: answer.status, parts: parts(answer.body) };
  };
  const deps = {
    open,
    now: () => 0,
    sleep: async () => {
      if (asked.length === 3) stop.abort();
    },
    random: () => 1,
    troubled: () => undefined,
    signal: stop.signal,
  };
  for await (const _ of watch({ path: "/api/v1/pods" }, deps));
  server.close();
  expect(asked).toEqual(["0", "900", "none"]);
});
