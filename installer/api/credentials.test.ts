import type { Transport } from "../../kubernetes/transport";
import { createLog } from "../../process/log";
import { type Access, AccessCheck, type Verdict } from "./access";
import { Credentials } from "./credentials";

const ACCOUNT = { namespace: "linkerd-cni", name: "linkerd-cni-plugin", seconds: 600 };
const OWN: Access = { host: "api", port: 443, ca: "CA", token: "own" };
const ACCEPTED: Verdict = { kind: "accepted" };
const REFUSED: Verdict = { kind: "refused", why: "not accepted (401)" };

function jwt(name: string): string {
  const claims = { sub: `system:serviceaccount:${ACCOUNT.namespace}:${ACCOUNT.name}`, iat: 0, exp: 600, name };
  return `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;
}

/** A node's clocks: both advance, and the wall clock can be set. */
class Clocks {
  private passed = 0;
  private wall: number;

  /** @param random the result of each random choice */
  constructor(
    wall = 0,
    readonly random = () => 0.999,
  ) {
    this.wall = wall;
  }

  now = () => this.passed;
  date = () => new Date(this.wall + this.passed);
  pass(ms: number): void {
    this.passed += ms;
  }
  set(ms: number): void {
    this.wall += ms;
  }
}

interface Given {
  /** The tokens that the API server issues, in order. @default none */
  readonly tokens?: readonly string[];
  /** Its answer instead. */
  readonly answer?: Transport;
  readonly verify: (access: Access) => Promise<Verdict>;
  readonly clock: Clocks;
  readonly known?: string;
}

/** Credentials with an API server that issues these tokens and gives these verdicts. */
function credentials({ tokens = [], answer, verify, clock, known }: Given) {
  const given = [...tokens];
  const gives: Transport = async () => ({ status: 201, body: JSON.stringify({ status: { token: given.shift() } }) });
  return new Credentials(
    {
      own: () => OWN,
      account: ACCOUNT,
      transport: () => Object.assign(answer ?? gives, { close: () => undefined }),
      verify,
      log: createLog("error", "plain", () => undefined),
      renewals: { inc: () => undefined },
      clock,
    },
    known,
  );
}

test("the refusal of a token does not affect its successor", async () => {
  const [old, fresh] = [jwt("old"), jwt("fresh")];
  let refuse: (verdict: Verdict) => void = () => undefined;
  const late = new Promise<Verdict>((resolve) => {
    refuse = resolve;
  });
  const verify = async ({ token }: Access) => (token === old ? late : ACCEPTED);
  const made = credentials({ tokens: [fresh], verify, clock: new Clocks(500_000), known: old });
  const asked = made.verify();
  expect(await made.renew()).toBe(true);
  refuse(REFUSED);
  await asked;
  expect(made.current().token).toBe(fresh);
});

const UNAUTHORIZED: Verdict = { kind: "refused", why: "not accepted (401)", isUnauthorized: true };

test.each<[string, Verdict, Verdict["kind"]]>([
  ["accepted", ACCEPTED, "accepted"],
  ["refused, so it cannot renew tokens", UNAUTHORIZED, "refused"],
  ["not allowed to get pods, by a user's own role", REFUSED, "accepted"],
  ["not answered", { kind: "unknown" }, "unknown"],
])("an installer with the plugin's token from its predecessor, whose own token is %s", async (_, own, kind) => {
  const verify = async ({ token }: Access) => (token === OWN.token ? own : ACCEPTED);
  const made = credentials({ tokens: [], verify, clock: new Clocks(), known: jwt("known") });
  expect((await made.verify()).kind).toBe("accepted");
  expect((await made.verifyToKeep()).kind).toBe(kind);
});

test("on a node whose clock is ahead, a token lasts as long as elsewhere", async () => {
  const [first, second] = [jwt("first"), jwt("second")];
  const clock = new Clocks(3_600_000);
  const made = credentials({ tokens: [first, second], verify: async () => ACCEPTED, clock });
  expect(await made.renew()).toBe(true);
  clock.pass(479_000);
  expect(await made.renew()).toBe(false);
  expect(made.ofPlugin()?.token).toBe(first);
  clock.pass(1_000);
  expect(await made.renew()).toBe(true);
});

test("nodes that got their tokens at the same time renew them at different times, each at a fixed share of the lifetime", async () => {
  const renewedAfter = async (random: number) => {
    const clock = new Clocks(0, () => random);
    const made = credentials({ tokens: ["a", "b", "c"].map(jwt), verify: async () => ACCEPTED, clock });
    await made.renew();
    const lives: number[] = [];
    for (const begun of [0, 1]) {
      let seconds = begun;
      for (; !(await made.renew()); seconds++) clock.pass(1_000);
      lives.push(seconds - begun);
    }
    return lives;
  };
  expect(await Promise.all([0, 0.5, 0.999].map(renewedAfter))).toEqual([
    [420, 420],
    [450, 450],
    [480, 480],
  ]);
});

test("a token that becomes refused is replaced at once, one that was never accepted after a minute", async () => {
  const [old, fresh, next] = [jwt("old"), jwt("fresh"), jwt("next")];
  const refused = new Set([old, fresh]);
  const clock = new Clocks(1_000);
  const verify = async ({ token }: Access) => (refused.has(token) ? REFUSED : ACCEPTED);
  const made = credentials({ tokens: [fresh, next], verify, clock, known: old });
  await made.verify();
  expect(await made.renew()).toBe(false);
  expect(made.current().token).toBe("own");
  clock.pass(59_000);
  expect(await made.renew()).toBe(false);
  clock.pass(1_000);
  expect(await made.renew()).toBe(true);
  expect(made.current().token).toBe(next);
});

test("without an answer, tokens are requested less and less often, down to once a minute", async () => {
  const clock = new Clocks();
  const askedAt: number[] = [];
  const answer: Transport = async () => {
    askedAt.push(clock.now() / 1000);
    return { status: 504, body: "" };
  };
  const made = credentials({ answer, verify: async () => ACCEPTED, clock });
  for (; askedAt.length < 7; clock.pass(500)) await made.renew();
  expect(askedAt.slice(1).map((at, index) => at - (askedAt[index] ?? 0))).toEqual([5, 10, 20, 40, 60, 60]);
});

describe.each([
  ["back", -3 * 3_600_000],
  ["forward", 3 * 3_600_000],
])("a wall clock that is set three hours %s", (_, step) => {
  test("does not hide a refusal: the token is checked again after half a minute, and renewed", async () => {
    const [old, fresh] = [jwt("old"), jwt("fresh")];
    const clock = new Clocks(1_000);
    const refused = new Set<string>();
    const asked: string[] = [];
    const answer = async () => ({ status: refused.has(asked.at(-1) ?? "") ? 401 : 200, body: "" });
    const transport = ({ token }: Access) => {
      asked.push(token);
      return Object.assign(answer, { close: () => undefined });
    };
    const check = new AccessCheck({ transport, path: "/pod", clock });
    const verify = check.check.bind(check);
    const made = credentials({ tokens: [fresh], verify, clock, known: old });
    expect(await made.verify()).toEqual(ACCEPTED);
    clock.set(step);
    refused.add(old);
    clock.pass(29_000);
    expect(await made.verify()).toEqual(ACCEPTED);
    clock.pass(1_000);
    expect(await made.verify()).toMatchObject({ kind: "refused" });
    expect(await made.renew()).toBe(true);
    expect(made.current().token).toBe(fresh);
  });

  test("neither ends a token early nor keeps it beyond its lifetime", async () => {
    const [first, second] = [jwt("first"), jwt("second")];
    const clock = new Clocks(1_000);
    const made = credentials({ tokens: [first, second], verify: async () => ACCEPTED, clock });
    await made.renew();
    clock.set(step);
    expect(await made.renew()).toBe(false);
    expect(made.current().token).toBe(first);
    clock.pass(480_000);
    expect(await made.renew()).toBe(true);
  });
});
