import type { Transport } from "../../kubernetes/transport";
import { createLog } from "../../process/log";
import type { Access, Verdict } from "./access";
import { Credentials } from "./credentials";

const ACCOUNT = { namespace: "linkerd-cni", name: "linkerd-cni-plugin", seconds: 600 };
const OWN: Access = { host: "api", port: 443, ca: "CA", token: "own" };
const ACCEPTED: Verdict = { kind: "accepted" };
const REFUSED: Verdict = { kind: "refused", why: "not accepted (401)" };

function jwt(name: string): string {
  const claims = { sub: `system:serviceaccount:${ACCOUNT.namespace}:${ACCOUNT.name}`, iat: 0, exp: 600, name };
  return `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;
}

/** Credentials whose API server gives these tokens, and judges them as told. */
function credentials(tokens: readonly string[], verify: (token: string) => Promise<Verdict>, known?: string) {
  const given = [...tokens];
  const answer: Transport = async () => ({ status: 201, body: JSON.stringify({ status: { token: given.shift() } }) });
  return new Credentials(
    {
      own: () => OWN,
      account: ACCOUNT,
      transport: () => Object.assign(answer, { close: () => undefined }),
      verify: ({ token }) => verify(token),
      log: createLog("error", "plain", () => undefined),
      renewals: { inc: () => undefined },
    },
    known,
  );
}

test("the refusal of a token says nothing about the one that has taken its place", async () => {
  const [old, fresh] = [jwt("old"), jwt("fresh")];
  let refuse: (verdict: Verdict) => void = () => undefined;
  const late = new Promise<Verdict>((resolve) => {
    refuse = resolve;
  });
  const made = credentials([fresh], async (token) => (token === old ? late : ACCEPTED), old);
  const asked = made.verify(500_000);
  expect(await made.renew(500_000)).toBe(true);
  refuse(REFUSED);
  await asked;
  expect(made.current(500_000).token).toBe(fresh);
});

test("on a node whose clock is ahead a token is as good for as long as elsewhere", async () => {
  const [first, second] = [jwt("first"), jwt("second")];
  const made = credentials([first, second], async () => ACCEPTED);
  const ahead = 3_600_000;
  expect(await made.renew(ahead)).toBe(true);
  expect(await made.renew(ahead + 479_000)).toBe(false);
  expect(made.ofPlugin(ahead + 479_000)?.token).toBe(first);
  expect(await made.renew(ahead + 480_000)).toBe(true);
});

test("a token that was refused is asked for anew at once, one that is refused from the first in a minute", async () => {
  const [old, fresh, next] = [jwt("old"), jwt("fresh"), jwt("next")];
  const refused = new Set([old, fresh]);
  const made = credentials([fresh, next], async (token) => (refused.has(token) ? REFUSED : ACCEPTED), old);
  await made.verify(1_000);
  expect(await made.renew(1_000)).toBe(false);
  expect(made.current(1_000).token).toBe("own");
  expect(await made.renew(60_000)).toBe(false);
  expect(await made.renew(61_000)).toBe(true);
  expect(made.current(61_000).token).toBe(next);
});
