import type { ApiServer } from "../../../kubernetes/api-server";
import { watch } from "../../../kubernetes/watch";
import { ApiStub, json } from "../../support/api-server";

/** Answers every watch that its version is too old. */
async function goneServer(): Promise<{ readonly address: ApiServer; close(): void }> {
  const stub = await ApiStub.start(json(410, { kind: "Status", reason: "Expired" }));
  return { address: { host: "127.0.0.1", port: stub.port, ca: stub.ca, token: "t" }, close: () => stub.close() };
}

test("if the server's versions have gone back, a list reads from the database", async () => {
  const stop = new AbortController();
  const asked: string[] = [];
  const answers = [
    { status: 200, body: JSON.stringify({ metadata: { resourceVersion: "900" }, items: [] }) },
    { status: 504, body: '{"kind":"Status","reason":"Timeout","message":"Too large resource version: 900"}' },
    { status: 200, body: JSON.stringify({ metadata: { resourceVersion: "7" }, items: [] }) },
  ];
  const server = await goneServer();
  const deps = {
    server: () => server.address,
    send: async ({ path }: { readonly path: string }) => {
      asked.push(new URL(path, "https://a").searchParams.get("resourceVersion") ?? "none");
      return answers[asked.length - 1] ?? { status: 500, body: "" };
    },
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
