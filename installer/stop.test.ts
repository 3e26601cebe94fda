import { type Answer, askForDaemonSet, decideByAnswer, decideBySettings } from "./stop";

test.each<[string, Answer, boolean]>([
  ["rollout, restart, eviction: the DaemonSet is there", { kind: "there", deleting: false }, false],
  ["the DaemonSet is being deleted", { kind: "there", deleting: true }, true],
  ["the node is none of its nodes any more", { kind: "there", deleting: false, unwanted: "its nodeSelector" }, true],
  ["deleted", { kind: "status", status: 404 }, true],
  ["the service account is deleted", { kind: "refused", status: 401, plugin: false }, true],
  ["the pod is deleted by force", { kind: "refused", status: 401, plugin: true }, false],
  ["the role is deleted", { kind: "refused", status: 403, plugin: false }, true],
  ["the API server is overloaded", { kind: "status", status: 429 }, false],
  ["the API server fails", { kind: "status", status: 500 }, false],
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

const DAEMON_SET = "/apis/apps/v1/namespaces/n/daemonsets/d";
const NAMESPACE = "/api/v1/namespaces/n";
const NODE = "/api/v1/nodes/node-1";
const POD = "/api/v1/namespaces/n/pods/d-1";
const GOING = { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } };

type Answers = Readonly<Record<string, number | object>>;

/** Answers by path: an object, or a status without one; nothing is said about other paths. */
const server = (answers: Answers) => async (request: { readonly path: string }) => {
  const answer = answers[request.path] ?? {};
  return typeof answer === "number" ? { status: answer, body: "{}" } : { status: 200, body: JSON.stringify(answer) };
};

const ask = (own: Answers, plugin?: Answers) =>
  askForDaemonSet({
    daemonSet: { namespace: "n", name: "d" },
    node: "node-1",
    pod: "d-1",
    own: server(own),
    ...(plugin === undefined ? {} : { plugin: server(plugin) }),
  });
const there: Answer = { kind: "there", deleting: false };

test("a mark of deletion counts only on the object itself", async () => {
  expect(await ask({ [DAEMON_SET]: GOING })).toEqual({ kind: "there", deleting: true });
  expect(await ask({ [DAEMON_SET]: { metadata: {}, spec: { template: GOING } } })).toEqual(there);
});

test("a namespace that is being deleted takes its DaemonSet along, marked or not", async () => {
  expect(await ask({ [NAMESPACE]: GOING })).toEqual({ kind: "there", deleting: true });
});

describe("a DaemonSet that selects other nodes", () => {
  const daemonSet = { spec: { template: { spec: { nodeSelector: { pool: "mesh" } } } } };
  const node = (pool: string) => ({ metadata: { labels: { pool } } });
  const selecting = (rest: Answers) => ask({ [DAEMON_SET]: daemonSet, [POD]: GOING, ...rest });

  test("is as good as deleted where our pod goes", async () => {
    const unwanted = { ...there, unwanted: "its nodeSelector or nodeAffinity" };
    expect(await selecting({ [NODE]: node("batch") })).toEqual(unwanted);
    expect(await selecting({ [NODE]: node("mesh") })).toEqual(there);
  });

  test("is not where the container alone is stopped, and starts again in the same pod", async () => {
    expect(await selecting({ [NODE]: node("batch"), [POD]: {} })).toEqual(there);
  });

  test.each([NODE, POD])("is not where nobody can tell: %s", async (path) => {
    for (const status of [403, 404, 500])
      expect(await selecting({ [NODE]: node("batch"), [path]: status })).toEqual(there);
  });
});

test.each<readonly [string, Answers | undefined, boolean]>([
  ["there is no token of the plugin's own", undefined, false],
  ["the plugin is let in", { [NAMESPACE]: {} }, true],
  ["the plugin is let in to a namespace that is being deleted", { [NAMESPACE]: GOING }, false],
  ["the plugin's account is gone, too", { [NAMESPACE]: 401 }, false],
  ["the plugin's role is gone", { [NAMESPACE]: 403 }, false],
  ["the namespace is gone", { [NAMESPACE]: 404 }, false],
  ["nobody can tell", { [NAMESPACE]: 500 }, true],
])("where our own token is refused and %s", async (_, answers, plugin) => {
  expect(await ask({ [DAEMON_SET]: 401 }, answers)).toEqual({ kind: "refused", status: 401, plugin });
});

test("a role that is deleted is no matter of tokens", async () => {
  expect(await ask({ [DAEMON_SET]: 403 }, {})).toEqual({ kind: "refused", status: 403, plugin: false });
});
