import { type Answer, askForDaemonSet, decideByAnswer, decideBySettings } from "./stop";

const status = (code: number, deleting = false): Answer => ({ kind: "status", status: code, deleting });

test.each<[string, Answer, boolean]>([
  ["rollout, restart, eviction: the DaemonSet is there", status(200), false],
  ["the DaemonSet is being deleted", status(200, true), true],
  ["deleted", status(404), true],
  ["the service account is deleted", status(401), true],
  ["the role is deleted", status(403), true],
  ["the API server is overloaded", status(429), false],
  ["the API server fails", status(500), false],
  ["the API server is down", { kind: "silence", reason: "connect ECONNREFUSED" }, false],
])("on a stop, %s", (_, answer, remove) => expect(decideByAnswer(answer).remove).toBe(remove));

test.each([
  ["always", undefined, true],
  ["never", { namespace: "n", name: "d" }, false],
  ["auto", undefined, false],
] as const)("policy %s decides without asking", (stopPolicy, daemonSet, remove) => {
  const decided = decideBySettings({ stopPolicy, ...(daemonSet ? { daemonSet } : {}) });
  expect(decided).toMatchObject({ kind: "decided", remove });
});

test("policy auto asks where the DaemonSet is known", () => {
  expect(decideBySettings({ stopPolicy: "auto", daemonSet: { namespace: "n", name: "d" } })).toEqual({
    kind: "undecided",
    ask: { namespace: "n", name: "d" },
  });
});

test("a mark of deletion counts only on the object itself", async () => {
  const ask = (body: unknown) =>
    askForDaemonSet({ namespace: "n", name: "d" }, async () => ({ status: 200, body: JSON.stringify(body) }), 1000);
  expect(await ask({ metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } })).toEqual(status(200, true));
  expect(await ask({ metadata: {}, spec: { template: { metadata: { deletionTimestamp: null } } } })).toEqual(
    status(200),
  );
});

test("a namespace that is being deleted takes its DaemonSet along, marked or not", async () => {
  const ask = (namespace: object) =>
    askForDaemonSet(
      { namespace: "n", name: "d" },
      async ({ path }) => ({
        status: 200,
        body: JSON.stringify({ metadata: path === "/api/v1/namespaces/n" ? namespace : {} }),
      }),
      1000,
    );
  expect(await ask({ deletionTimestamp: "2026-01-01T00:00:00Z" })).toEqual(status(200, true));
  expect(await ask({})).toEqual(status(200));
});
