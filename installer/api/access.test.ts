import type { Transport } from "../../kubernetes/transport";
import { type Access, AccessCheck } from "./access";

const access: Access = { host: "api.example", port: 443, token: "token", ca: "CA" };

/** A check by an API server that answers these one after the other, 0: not at all. */
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
  const check = new AccessCheck({ transport: () => transport, path: "/pod", now: () => now });
  return {
    at: async (ms: number, token = access.token) => {
      now = ms;
      return (await check.check({ ...access, token })).kind;
    },
    asked: () => asked,
  };
}

test("a token that is refused is asked for again after half a minute: it may be the API server that was wrong", async () => {
  const { at, asked } = checked(401, 200);
  expect([await at(0), await at(29_999), asked()]).toEqual(["refused", "refused", 1]);
  expect([await at(30_000), await at(59_999), asked()]).toEqual(["accepted", "accepted", 2]);
});

test("what was not answered is asked again after five seconds, whichever way that went wrong", async () => {
  const { at, asked } = checked(0, 503, 200);
  expect([await at(0), await at(4_999), asked()]).toEqual(["unknown", "unknown", 1]);
  expect([await at(5_000), await at(10_000), asked()]).toEqual(["unknown", "accepted", 3]);
});

test("each token is asked for by itself", async () => {
  const { at, asked } = checked(401, 200);
  expect([await at(0), await at(1, "other"), await at(2), asked()]).toEqual(["refused", "accepted", "refused", 2]);
});
