import { askForDaemonSet, decide, decideBySettings, type Finding } from "./stop-decision";

test.each([
  ["always", true],
  ["never", false],
] as const)("policy %s decides without asking", (stopPolicy, remove) => {
  expect(decideBySettings({ stopPolicy })).toMatchObject({ remove });
});

test("policy auto asks", () => expect(decideBySettings({ stopPolicy: "auto" })).toBeUndefined());

const DAEMON_SET = "/apis/apps/v1/namespaces/n/daemonsets/d";
const NAMESPACE = "/api/v1/namespaces/n";
const NODE = "/api/v1/nodes/node-1";
const POD = "/api/v1/namespaces/n/pods/d-1";
const GOING = { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } };

type Answers = Readonly<Record<string, number | object>>;

/** Answers by path: an object, or a status without one; other paths have no answer. */
const server = (answers: Answers) => async (request: { readonly path: string }) => {
  const answer = answers[request.path] ?? {};
  if (typeof answer !== "number") return { status: 200, body: JSON.stringify(answer) };
  const [kind, name] = request.path.split("/").slice(-2);
  const status = {
    kind: "Status",
    code: answer,
    ...(answer === 404 ? { reason: "NotFound", details: { kind, name } } : {}),
  };
  return { status: answer, body: JSON.stringify(status) };
};

const question = (own: Answers, plugin?: Answers) => ({
  daemonSet: { namespace: "n", name: "d" },
  node: "node-1",
  pod: "d-1",
  own: server(own),
  ...(plugin === undefined ? {} : { unbound: server(plugin) }),
});
const ask = (own: Answers, plugin?: Answers) => askForDaemonSet(question(own, plugin));

const found = (is: Finding["is"], remove: boolean, why: string) => ({
  is,
  remove,
  why: expect.stringContaining(why),
  ...(is === "certain" && remove ? { all: true as const } : {}),
});
const there = found("certain", false, "our DaemonSet is there");

test.each<readonly [string, number, Finding]>([
  ["it is deleted", 404, found("certain", true, "our DaemonSet n/d is deleted")],
  ["the API server is overloaded", 429, found("confirmable", false, "answers 429")],
  ["the API server fails", 500, found("confirmable", false, "answers 500")],
])("where %s", async (_, status, finding) => expect(await ask({ [DAEMON_SET]: status })).toEqual(finding));

test.each([
  ["of a proxy", "default backend - 404"],
  ["of a server without the resource", '{"kind":"Status","reason":"NotFound","details":{}}'],
  ["about another object", '{"kind":"Status","reason":"NotFound","details":{"kind":"daemonsets","name":"other"}}'],
  ["about another kind", '{"kind":"Status","reason":"NotFound","details":{"kind":"namespaces","name":"d"}}'],
])("a 404 %s does not say that the DaemonSet is deleted", async (_, body) => {
  const own = async () => ({ status: 404, body });
  expect(await askForDaemonSet({ ...question({}), own })).toEqual(found("confirmable", false, "answers 404"));
});

test("an API server that is down, or answers nonsense, leaves everything in place", async () => {
  const silent = async () => Promise.reject(new Error("connect ECONNREFUSED"));
  const nonsense = async () => ({ status: 200, body: "<html>" });
  for (const own of [silent, nonsense]) {
    expect(await askForDaemonSet({ ...question({}), own })).toEqual(found("confirmable", false, "does not answer"));
  }
});

test("a deletionTimestamp counts only on the object itself", async () => {
  expect(await ask({ [DAEMON_SET]: GOING })).toEqual(found("certain", true, "our DaemonSet is being deleted"));
  expect(await ask({ [DAEMON_SET]: { metadata: {}, spec: { template: GOING } } })).toEqual(there);
});

test("a namespace that is being deleted also deletes its DaemonSet, marked or not", async () => {
  expect(await ask({ [NAMESPACE]: GOING })).toEqual(found("certain", true, "our namespace is being deleted"));
});

describe("a DaemonSet that selects other nodes", () => {
  const daemonSet = { spec: { template: { spec: { nodeSelector: { pool: "mesh" } } } } };
  const node = (pool: string) => ({ metadata: { labels: { pool } } });
  const selecting = (rest: Answers) => ask({ [DAEMON_SET]: daemonSet, [POD]: GOING, ...rest });

  test("counts as deleted if our pod is terminating", async () => {
    const unwanted = found("certain", true, "no longer selects this node: nodeSelector requires pool=mesh");
    expect(await selecting({ [NODE]: node("batch") })).toEqual(unwanted);
    expect(await selecting({ [NODE]: node("mesh") })).toEqual(there);
  });

  test("does not if only the container stops and restarts in the same pod", async () => {
    expect(await selecting({ [NODE]: node("batch"), [POD]: {} })).toEqual(there);
  });

  test.each([NODE, POD])("does not if that is unknown: %s", async (path) => {
    for (const status of [403, 404, 500])
      expect(await selecting({ [NODE]: node("batch"), [path]: status })).toEqual(there);
  });
});

test.each<readonly [string, Answers | undefined, Finding]>([
  ["there is no other token", undefined, found("confirmable", true, "our service account is deleted")],
  ["the other one is accepted", { [NAMESPACE]: {} }, found("confirmable", false, "only our pod is deleted")],
  [
    "the other one is accepted, and the namespace is being deleted",
    { [NAMESPACE]: GOING },
    found("certain", true, "our namespace"),
  ],
  ["the namespace is gone", { [NAMESPACE]: 404 }, found("certain", true, "our namespace is being deleted")],
  ["the other one is also refused", { [NAMESPACE]: 401 }, found("confirmable", true, "the service account is deleted")],
  [
    "the role is deleted",
    { [NAMESPACE]: 403 },
    found("doubtful", false, "answers the one not bound to our pod with 403"),
  ],
  ["it is unclear", { [NAMESPACE]: 500 }, found("doubtful", false, "answers the one not bound to our pod with 500")],
])("if our own token is refused and %s", async (_, answers, finding) => {
  expect(await ask({ [DAEMON_SET]: 401 }, answers)).toEqual(finding);
});

const FORBIDDEN = found("doubtful", false, "we may not get our DaemonSet (403), and nothing says that it is deleted");

test.each<readonly [string, Answers, Answers | undefined, Finding]>([
  ["a user's own role", {}, {}, FORBIDDEN],
  ["a rollback to a chart without an account for the plugin", {}, { [NAMESPACE]: 401 }, FORBIDDEN],
  ["a temporary fault of all bindings", { [NAMESPACE]: 403 }, { [NAMESPACE]: 403 }, FORBIDDEN],
  ["no account for the plugin", { [NAMESPACE]: 403 }, undefined, FORBIDDEN],
  ["a namespace that goes", { [NAMESPACE]: GOING }, undefined, found("certain", true, "our namespace")],
  [
    "a namespace being deleted, visible to the plugin",
    { [NAMESPACE]: 403 },
    { [NAMESPACE]: GOING },
    found("certain", true, "our namespace"),
  ],
])("a role that may not get the DaemonSet does not decide: %s", async (_, own, plugin, finding) => {
  expect(await ask({ [DAEMON_SET]: 403, ...own }, plugin)).toEqual(finding);
});

/** Decides by findings, the last of which repeats; returns how long it waited. */
async function decided(...findings: readonly Finding[]) {
  let [count, ms] = [0, 0];
  const told: string[] = [];
  const next = async () => {
    count += 1;
    return findings[Math.min(count, findings.length) - 1] as Finding;
  };
  const clock = {
    now: () => ms,
    sleep: async (pause: number) => {
      ms += pause;
    },
  };
  const decision = await decide(next, clock, (why) => told.push(why));
  return { ...decision, count, ms, told };
}
const certain = (remove: boolean): Finding => ({ is: "certain", remove, why: "sure" });
const maybe = (remove: boolean, why = "once"): Finding => ({ is: "confirmable", remove, why });
const doubt: Finding = { is: "doubtful", remove: false, why: "403" };

test("a certain finding is not confirmed", async () => {
  for (const remove of [true, false]) expect(await decided(certain(remove))).toMatchObject({ remove, count: 1, ms: 0 });
});

test("a finding that may be temporary must be confirmed", async () => {
  expect(await decided(maybe(true))).toMatchObject({ remove: true, count: 2 });
  expect(await decided(maybe(true), certain(false))).toMatchObject({ remove: false, count: 2 });
  expect(await decided(maybe(true), doubt, maybe(true), maybe(false, "other"), certain(true))).toMatchObject({
    remove: true,
    count: 5,
  });
});

test("the log has each finding once", async () => {
  expect((await decided(doubt, doubt, maybe(true), maybe(true))).told).toEqual(["403", "once"]);
  expect((await decided(certain(true))).told).toEqual([]);
});

test("helm uninstall deletes bindings first and accounts last: a cached token is accepted for ten more seconds", async () => {
  const [beforeTen, afterTen] = [[doubt, doubt, doubt, doubt, doubt, doubt], maybe(true)];
  expect(await decided(...beforeTen, afterTen)).toMatchObject({ remove: true, ms: 14_000 });
});

test("without a decision everything stays, and a pod's 30 s are not over", async () => {
  const { remove, why, ms } = await decided(doubt);
  expect([remove, why]).toEqual([false, "403"]);
  expect(ms).toBeGreaterThanOrEqual(10_000);
  expect(ms).toBeLessThanOrEqual(15_000);
});
