import type { ApiServer } from "../../kubernetes/api-server";
import type { ApiRequest, Transport } from "../../kubernetes/transport";
import { createLog } from "../../process/log";
import { UnboundToken } from "./unbound-token";

const HOUR_MS = 3_600_000;
const PATH = "/api/v1/namespaces/mesh/serviceaccounts/cni/token";

/** A token of an account with a lifetime in seconds; the signature does not matter here. */
function jwt(name: string, seconds = 86_400, sub = "system:serviceaccount:mesh:cni"): string {
  const claims = { sub, iat: 1_000, exp: 1_000 + seconds, name };
  return `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;
}

const OWN: ApiServer = { host: "api", port: 443, ca: "CA", token: jwt("own") };
const issue = (token: unknown) => ({ status: 201, body: JSON.stringify({ status: { token } }) });

/** A token whose API server answers in this way, the requests, and the passing of time. */
function unbound(
  answer: (request: ApiRequest, access: ApiServer) => { status: number; body: string },
  own = () => OWN,
  random = 0.5,
) {
  let now = 0;
  const requests: ApiRequest[] = [];
  const token = new UnboundToken({
    own,
    transport: (access) => {
      const send: Transport = Object.assign(
        async (request: ApiRequest) => {
          requests.push(request);
          return answer(request, access);
        },
        { close: () => undefined },
      );
      return send;
    },
    log: createLog("error", "plain", () => undefined),
    clock: { now: () => now, random: () => random },
  });
  return {
    token,
    requests,
    pass: (ms: number) => {
      now += ms;
      return token.renew();
    },
  };
}

test("is requested for the account of the pod's own token, for a day, bound to nothing", async () => {
  const { token, requests, pass } = unbound((_, access) => issue(access === OWN ? jwt("second") : undefined));
  expect(token.access).toBeUndefined();
  await pass(0);
  expect(token.access).toEqual({ ...OWN, token: jwt("second") });
  expect(requests).toMatchObject([{ method: "POST", path: PATH, body: { spec: { expirationSeconds: 86_400 } } }]);
  expect(JSON.stringify(requests)).not.toContain("boundObjectRef");
});

test.each([
  [0, 16.7, 16.8],
  [0.999, 19.1, 19.2],
])(
  "with the chance %d it is renewed between %d and %d hours of 24: not with all other nodes'",
  async (random, early, due) => {
    const { requests, pass } = unbound(() => issue(jwt("")), undefined, random);
    await pass(0);
    await pass(early * HOUR_MS);
    expect(requests).toHaveLength(1);
    await pass((due - early) * HOUR_MS + 1);
    expect(requests).toHaveLength(2);
  },
);

test("is renewed before its end, and used until then", async () => {
  let given = 0;
  const { token, requests, pass } = unbound(() => {
    given += 1;
    return given === 2 ? { status: 500, body: "" } : issue(jwt(`${given}`));
  });
  await pass(0);
  await pass(17 * HOUR_MS);
  expect(requests).toHaveLength(1);
  await pass(1.1 * HOUR_MS);
  expect(requests).toHaveLength(2);
  expect(token.access?.token).toBe(jwt("1"));
  await pass(60_000);
  expect(token.access?.token).toBe(jwt("3"));
});

test("without an answer it ends with its life", async () => {
  let isUp = true;
  const { token, pass } = unbound(() => {
    if (!isUp) throw new Error("connection refused");
    return issue(jwt("only", 600));
  });
  await pass(0);
  isUp = false;
  await pass(599_000);
  expect(token.access?.token).toBe(jwt("only", 600));
  await pass(1_000);
  expect(token.access).toBeUndefined();
});

test.each([
  ["refuses", { status: 403, body: "{}" }],
  ["does not know the account", { status: 404, body: "{}" }],
  ["does not answer JSON", { status: 200, body: "<html>" }],
  ["answers nothing", { status: 201, body: "{}" }],
  ["answers another type", issue(7)],
  ["answers a token without claims", issue("opaque")],
  [
    "answers a token without a lifetime",
    issue(`e30.${Buffer.from('{"sub":"system:serviceaccount:mesh:cni"}').toString("base64url")}.x`),
  ],
])("an API server that %s is asked again with back-off", async (_, answer) => {
  const { token, requests, pass } = unbound(() => answer);
  await pass(0);
  await pass(0);
  expect(requests).toHaveLength(1);
  for (let asked = 0; asked < 720; asked += 1) await pass(5_000);
  expect(token.access).toBeUndefined();
  // An hour, with at most a minute between two requests.
  expect(requests.length).toBeGreaterThan(60);
  expect(requests.length).toBeLessThan(200);
});

test.each([
  ["is opaque", "opaque"],
  ["has three parts that are not JSON", "a.b.c"],
  ["has no claims", "e30.bnVsbA.x"],
  ["is a user's", jwt("own", 600, "admin")],
])("an own token that %s cannot request one", async (_, own) => {
  const { token, requests, pass } = unbound(
    () => issue(jwt("second")),
    () => ({ ...OWN, token: own }),
  );
  await pass(0);
  expect(token.access).toBeUndefined();
  expect(requests).toEqual([]);
});

test("missing files of the own token are tried again", async () => {
  let isMounted = false;
  const { token, pass } = unbound(
    () => issue(jwt("second")),
    () => {
      if (!isMounted) throw new Error("no token");
      return OWN;
    },
  );
  await pass(0);
  isMounted = true;
  await pass(60_000);
  expect(token.access?.token).toBe(jwt("second"));
});
