import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createLog } from "../../process/log";
import { certificate } from "../../system/certificates.testing";
import { ApiConnection } from "./api-connection";

test("an unreachable API server is tried again soon, and then less often", async () => {
  let now = 0;
  const connection = new ApiConnection({
    // Nothing listens on this port.
    access: () => ({ host: "127.0.0.1", port: 1, ca: "CA", token: "token" }),
    path: "/pod",
    log: createLog("error", "plain", () => undefined),
    clock: { now: () => now, random: () => 1 },
  });
  const pauses: number[] = [];
  for (let round = 0; round < 4; round++) {
    const pause = await connection.checkIfDue();
    pauses.push(pause);
    now += pause;
  }
  connection.close();
  expect(pauses).toEqual([3_000, 6_000, 10_000, 10_000]);
  expect(connection.problem).toBeDefined();
});

/** A connection to an API server that answers each token with these statuses in turn, the last one for good. */
async function connectedTo(answers: Readonly<Record<string, readonly number[]>>) {
  const { cert, key } = certificate({ subject: "api", names: ["127.0.0.1"] });
  const left = new Map(Object.entries(answers).map(([token, statuses]) => [`Bearer ${token}`, [...statuses]]));
  const server = createServer({ cert, key }, ({ headers: { authorization = "" } }, response) => {
    const [status = 500, ...next] = left.get(authorization) ?? [];
    if (next.length > 0) left.set(authorization, next);
    response.statusCode = status;
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const state = { token: Object.keys(answers)[0] ?? "", now: 0 };
  const connection = new ApiConnection({
    access: () => ({ host: "127.0.0.1", port, ca: cert, token: state.token }),
    path: "/pod",
    log: createLog("error", "plain", () => undefined),
    clock: { now: () => state.now, random: () => 1 },
  });
  close = () => {
    connection.close();
    server.close();
  };
  /** The verdict after the checks that are due until then. */
  const at = async (ms: number) => {
    while (state.now + (await connection.checkIfDue()) <= ms) state.now += await connection.checkIfDue();
    state.now = ms;
    return (await connection.verdict()).kind;
  };
  return { connection, state, at };
}

let close: () => void = () => undefined;
afterEach(() => close());

test("a refused token is checked again soon, since the API server may have been wrong", async () => {
  const { at } = await connectedTo({ token: [401, 200] });
  expect([await at(0), await at(2_999), await at(3_000)]).toEqual(["refused", "refused", "accepted"]);
});

test("one 403 does not invalidate an accepted token: an API server that has just started does not know the roles yet", async () => {
  const { at } = await connectedTo({ token: [200, 403, 200, 403, 503, 403] });
  const kinds = [await at(0), await at(25_000), await at(28_000), await at(53_000), await at(56_000), await at(62_000)];
  expect(kinds).toEqual(["accepted", "unknown", "accepted", "unknown", "unknown", "refused"]);
});

test("a token that never worked counts as refused by the first 403", async () => {
  expect(await (await connectedTo({ token: [403] })).at(0)).toBe("refused");
});

test("the next token is checked at once, also if another one is refused", async () => {
  const { at, state } = await connectedTo({ first: [401], next: [200] });
  expect(await at(0)).toBe("refused");
  Object.assign(state, { token: "next", now: 1_000 });
  expect(await at(1_000)).toBe("accepted");
});

test("a look-up that is refused has the token checked at once, as it is by then", async () => {
  const { at, state, connection } = await connectedTo({ first: [200], revoked: [401] });
  expect(await at(0)).toBe("accepted");
  // By now it is read again.
  Object.assign(state, { token: "revoked", now: 1_000 });
  expect((await connection.get("/pod", 30_000)).status).toBe(401);
  expect((await connection.verdict()).kind).toBe("refused");
});
