import type { ApiServer } from "../../kubernetes/api-server";
import type { Transport } from "../../kubernetes/transport";
import { AccessCheck } from "./access";

const access: ApiServer = { host: "api.example", port: 443, token: "token", ca: "CA" };

/** A check by an API server with these successive answers, 0: no answer. Random pauses have their maximum. */
function checked(...statuses: readonly number[]) {
  let now = 0;
  let asked = 0;
  const transport: Transport & { close(): void } = Object.assign(
    async () => {
      const status = statuses[asked++] ?? 0;
      if (status === 0) throw new Error("no answer");
      return { status, body: "" };
    },
    { close: () => undefined },
  );
  const check = new AccessCheck({
    transport: () => transport,
    path: "/pod",
    clock: { now: () => now, random: () => 1 },
  });
  return {
    learn: (status: number) => check.learn(access.token, status),
    at: async (ms: number, token = access.token) => {
      now = ms;
      return (await check.check({ ...access, token })).kind;
    },
    asked: () => asked,
  };
}

test("a refused token is checked again after five seconds, since the API server may have been wrong", async () => {
  const { at, asked } = checked(401, 200);
  expect([await at(0), await at(4_999), asked()]).toEqual(["refused", "refused", 1]);
  expect([await at(7_500), await at(37_499), asked()]).toEqual(["accepted", "accepted", 2]);
});

test("an unanswered check is repeated after five seconds, and then less and less often", async () => {
  const { at, asked } = checked(0, 503, 0, 0, 0, 200, 0, 200);
  const askedAt = [];
  for (let seconds = 0; asked() < 8; seconds++) {
    const before = asked();
    await at(seconds * 1_000);
    if (asked() > before) askedAt.push(seconds);
  }
  // An answer resets the pauses.
  expect(askedAt).toEqual([0, 5, 15, 35, 65, 95, 125, 130]);
});

test("one 403 does not invalidate an accepted token: an API server that has just started does not know the roles yet", async () => {
  const { at } = checked(200, 403, 200, 403, 403);
  const kinds = [await at(0), await at(30_000), await at(35_000), await at(65_000), await at(70_000)];
  expect(kinds).toEqual(["accepted", "unknown", "accepted", "unknown", "refused"]);
});

test("a token that never worked counts as refused by the first 403", async () => {
  expect(await checked(403).at(0)).toBe("refused");
});

test("a token that was accepted elsewhere is not asked for", async () => {
  const { at, learn, asked } = checked(401, 401);
  learn(500);
  learn(401);
  expect([await at(0), asked()]).toEqual(["refused", 1]);
  learn(200);
  expect([await at(29_999), asked()]).toEqual(["accepted", 1]);
  expect([await at(30_000), asked()]).toEqual(["refused", 2]);
});

test("a token that is refused elsewhere is asked for at once, if it was accepted", async () => {
  const { at, learn, asked } = checked(200, 401);
  await at(0);
  learn(401);
  expect([await at(1), asked()]).toEqual(["refused", 2]);
  learn(401);
  expect([await at(2), asked()]).toEqual(["refused", 2]);
});

test("the next token is checked at once", async () => {
  const { at, asked } = checked(401, 200);
  const kinds = [await at(0), await at(1, "next"), await at(2, "next"), asked()];
  expect(kinds).toEqual(["refused", "accepted", "accepted", 2]);
});
