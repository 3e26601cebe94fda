import { Bucket } from "../bucket";
import { Breakers } from "./breaker";
import { decide, retryAfter } from "./decide";
import { noteOpening, noteRound, type Returned, recollect, type Told } from "./recollect";
import type { Ward } from "./roster";

const MINUTE = 60_000;
const POLICY = {
  rounds: 3,
  pauseMs: 5 * MINUTE,
  longestPauseMs: 15 * MINUTE,
  returnMs: 5 * MINUTE,
  forgetMs: 30 * MINUTE,
};

describe("a breaker", () => {
  let breakers: Breakers;
  beforeEach(() => {
    breakers = new Breakers(POLICY);
  });

  /** Deletes a pod that was seen since the last round, a second after it was seen. */
  function round(at: number): void {
    expect(breakers.ask("web", at, at + 1_000)).toEqual({ kind: "go" });
    breakers.deleting("web", at, at + 1_000);
  }

  function threeRounds(): void {
    for (const at of [0, 10_000, 20_000]) round(at);
  }

  it("opens when pods came back broken from three rounds", () => {
    threeRounds();
    const wanted = { kind: "open", rounds: 3, helped: 0, openings: 1, waitMs: 5 * MINUTE };
    expect(breakers.ask("web", 30_000, 31_000)).toEqual(wanted);
    expect(breakers.ask("web", 30_000, 31_000)).toEqual(wanted);
    expect(breakers.openCount(31_000)).toBe(0);
    breakers.open("web", 31_000);
    expect(breakers.openCount(31_000)).toBe(1);
    expect(breakers.ask("web", 30_000, 32_000)).toEqual({ kind: "wait", waitMs: 5 * MINUTE - 1_000 });
    expect(breakers.ask("other", 30_000, 32_000)).toEqual({ kind: "go" });
  });

  it("counts all pods that were there at once as one round", () => {
    for (let index = 0; index < 50; index++) breakers.deleting("web", 0, 1_000 + index);
    round(10_000);
    round(20_000);
    expect(breakers.ask("web", 30_000, 31_000).kind).toBe("open");
  });

  it("tries one more round after each pause, and pauses longer each time", () => {
    threeRounds();
    let now = 31_000;
    for (const [index, pause] of [5, 10, 15, 15].entries()) {
      expect(breakers.ask("web", now, now)).toEqual({
        kind: "open",
        rounds: 3 + index,
        helped: 0,
        openings: 1 + index,
        waitMs: pause * MINUTE,
      });
      breakers.open("web", now);
      now += pause * MINUTE;
      expect(breakers.ask("web", now - 1, now - 1).kind).toBe("wait");
      expect(breakers.ask("web", 30_000, now).kind).toBe("go");
      breakers.deleting("web", 30_000, now);
      now += 10_000;
    }
  });

  it("forgets an owner that gave no more cause", () => {
    threeRounds();
    const later = 21_000 + POLICY.forgetMs;
    expect(breakers.ask("web", 30_000, later - 1).kind).toBe("open");
    expect(breakers.ask("web", 30_000, later).kind).toBe("go");
    breakers.deleting("web", 30_000, later);
    expect(breakers.ask("web", later + 1_000, later + 2_000).kind).toBe("go");
  });

  it("lets a pod that appears long after the last round, or pause, begin anew", () => {
    threeRounds();
    const last = 21_000 + POLICY.returnMs;
    expect(breakers.ask("web", last, last).kind).toBe("open");
    expect(breakers.ask("web", last + 1, last + 1).kind).toBe("go");
    breakers.open("web", 31_000);
    const paused = 31_000 + POLICY.pauseMs + POLICY.returnMs;
    breakers.deleting("web", 30_000, 31_000 + POLICY.pauseMs);
    expect(breakers.ask("web", paused, paused).kind).toBe("open");
    expect(breakers.deleting("web", paused + 1, paused + 1)).toBe(1);
  });
});

it("a trial is due after a pause, also where the Event of the pause was lost", () => {
  const breakers = new Breakers(POLICY);
  const moment = { firstSeen: 1_000, now: 2_000, date: 100_000 };
  const past = { rounds: 3, helped: 0, openings: 0, until: 0, at: 90_000, trial: false };
  breakers.recall("web", past, moment);
  expect(breakers.ask("web", 1_000, 2_000).kind).toBe("open");
  breakers.open("web", 2_000);
  const later = { firstSeen: 1_000, now: 2_000 + 5 * MINUTE, date: 100_000 + 5 * MINUTE };
  breakers.recall("web", past, later);
  expect(breakers.ask("web", 1_000, later.now).kind).toBe("go");
});

it("waits no longer than the longest pause, whatever another node's clock made of its end", () => {
  const breakers = new Breakers(POLICY);
  const past = { rounds: 3, helped: 0, openings: 1, until: 100_000 + 600 * MINUTE, at: 90_000, trial: true };
  breakers.recall("web", past, { firstSeen: 1_000, now: 2_000, date: 100_000 });
  expect(breakers.ask("web", 1_000, 2_000)).toEqual({ kind: "wait", waitMs: POLICY.longestPauseMs });
});

describe("what Events say about an owner", () => {
  const START = Date.parse("2026-01-01T00:00:00Z");
  const at = (second: number) => new Date(START + second * 1_000).toISOString();
  const told = (second: number, annotations: Told["metadata"], uid = "web"): Told => ({
    metadata: { ...annotations, creationTimestamp: at(second) },
    related: { uid },
  });
  const deletion = (second: number, round: number, { uid = "web", node = "node-1" } = {}) =>
    told(second, { annotations: noteRound(round, node) }, uid);
  const opening = (second: number, rounds: number, openings: number, until: number) =>
    told(second, { annotations: noteOpening(rounds, "node-1", openings, new Date(START + until * 1_000)) });
  const pod = (second: number) => ({ owner: "web", created: START + second * 1_000 });
  const recollected = (events: readonly Told[], pod: Returned, { node = "node-1", helped = -1 } = {}) => {
    const helpedAt = helped < 0 ? 0 : START + helped * 1_000;
    return recollect(events, pod, { node, returnMs: POLICY.returnMs, helpedAt });
  };

  const events = [
    deletion(10, 1),
    deletion(11, 1),
    deletion(25, 2),
    deletion(40, 3),
    deletion(41, 7, { uid: "other" }),
  ];

  it("counts rounds that a pod came back from, and not those of its siblings", () => {
    const rounds = [5, 9, 20, 30, 45].map((second) => recollected(events, pod(second)).rounds);
    expect(rounds).toEqual([0, 1, 1, 2, 3]);
    expect(recollected(events, pod(45))).toMatchObject({ openings: 0, until: 0, trial: false, at: START + 40_000 });
    expect(recollected([], pod(45)).rounds).toBe(0);
  });

  it("counts none for a pod that was created long after the last: what stood in the deleted one's place worked", () => {
    const last = 40 + POLICY.returnMs / 1_000;
    expect([last, last + 1].map((second) => recollected(events, pod(second)).rounds)).toEqual([3, 0]);
  });

  it("knows how many have helped, as a pod that was created after them works", () => {
    const seen = [-1, 0, 12, 30, 39].map((helped) => recollected(events, pod(45), { helped }));
    expect(seen.map(({ rounds, helped }) => [rounds, helped])).toEqual([0, 0, 1, 2, 3].map((helped) => [3, helped]));
  });

  it("counts all of a long row, also those before the last pause, beside a pod that worked before them", () => {
    const row = [deletion(10, 1), deletion(30, 2), deletion(60, 3), opening(80, 3, 1, 380), deletion(380, 4)];
    const seen = (helped: number) => recollected(row, pod(381), { helped });
    expect(seen(5)).toMatchObject({ rounds: 4, helped: 0, openings: 1, trial: false });
    expect(seen(40)).toMatchObject({ rounds: 4, helped: 2, openings: 1, trial: false });
  });

  it("does not take for help what was before the numbers began anew", () => {
    const anew = [...events, deletion(1_000, 1), deletion(1_010, 2), deletion(1_020, 3)];
    const seen = [500, 1_003].map((helped) => recollected(anew, pod(1_025), { helped }).helped);
    expect(seen).toEqual([0, 1]);
  });

  it("counts those of all nodes, and for a DaemonSet those of the pod's own", () => {
    const everywhere = [1, 2, 3, 4].map((round) => deletion(round * 10, round, { node: `node-${round}` }));
    expect(recollected(everywhere, pod(45)).rounds).toBe(4);
    const controller = { apiVersion: "apps/v1", kind: "DaemonSet", name: "web", uid: "web" };
    const seen = (node: string) => recollected(everywhere, { ...pod(45), controller }, { node }).rounds;
    expect([seen("node-1"), seen("node-5")]).toEqual([1, 0]);
  });

  it("has a pod wait that was created during a pause", () => {
    const opened = [...events, opening(50, 3, 1, 4_000)];
    expect(recollected(opened, pod(3_000))).toMatchObject({ rounds: 3, until: START + 4_000_000, trial: true });
  });

  it("knows the last pause, and whether there was a round since", () => {
    const opened = [...events, opening(50, 3, 1, 350)];
    expect(recollected(opened, pod(45))).toMatchObject({ rounds: 3, openings: 1, until: START + 350_000, trial: true });
    const tried = [...opened, deletion(360, 4)];
    expect(recollected(tried, pod(45)).trial).toBe(true);
    expect(recollected(tried, pod(365))).toMatchObject({ rounds: 4, openings: 1, trial: false });
  });

  it("leaves an owner alone that others have given up, as long as they do", () => {
    const asked = (events: readonly Told[], created: number, second: number) => {
      const breakers = new Breakers(POLICY);
      const moment = { firstSeen: 1_000, now: 2_000, date: START + second * 1_000 };
      breakers.recall("web", recollected(events, pod(created)), moment);
      return breakers.ask("web", 1_000, 2_000);
    };
    expect(asked(events, 30, 42)).toEqual({ kind: "go" });
    expect(asked(events, 45, 50)).toEqual({ kind: "open", rounds: 3, helped: 0, openings: 1, waitMs: 5 * MINUTE });
    const opened = [...events, opening(50, 3, 1, 350)];
    expect(asked(opened, 45, 60)).toEqual({ kind: "wait", waitMs: 290_000 });
    expect(asked(opened, 45, 351)).toEqual({ kind: "go" });
    const again = { kind: "open", rounds: 4, helped: 0, openings: 2, waitMs: 10 * MINUTE };
    expect(asked([...opened, deletion(360, 4)], 365, 370)).toEqual(again);
    expect(asked(opened, 45, 350 + 30 * 60)).toEqual({ kind: "go" });
  });
});

test("pods that serve nothing come before those that serve, which may be held up", () => {
  const bucket = new Bucket({ perSecond: 1, burst: 1 });
  const limits = { breakers: new Breakers(POLICY), bucket, deleteUnvalidated: true };
  const of = (diagnosis: string) =>
    ({ owner: diagnosis, controller: {}, firstSeen: 0, diagnosis, redirect: "absent", retryAt: 0 }) as unknown as Ward;
  const [serving, failed] = [of("unvalidated"), of("failed")];
  expect(decide([serving, failed], limits, 1_000)).toEqual({ kind: "delete", ward: failed });
  expect(decide([serving], limits, 1_000)).toEqual({ kind: "delete", ward: serving });
});

test("a pod that could not be deleted waits for its next attempt, also where its owner has to be left alone", () => {
  const breakers = new Breakers(POLICY);
  const past = { rounds: 3, helped: 0, openings: 0, until: 0, at: 90_000, trial: false };
  breakers.recall("web", past, { firstSeen: 1_000, now: 2_000, date: 100_000 });
  const limits = { breakers, bucket: new Bucket({ perSecond: 1, burst: 10 }), deleteUnvalidated: false };
  const ward = { owner: "web", firstSeen: 1_000, diagnosis: "failed", retryAt: 6_000 } as Ward;
  expect(decide([ward], limits, 2_000)).toEqual({ kind: "rest", ms: 4_000 });
  expect(decide([ward], limits, 6_000)).toMatchObject({ kind: "suspend", ward });
});

test("a deletion that failed is tried again ever later, and at least every minute", () => {
  expect([1, 2, 3, 7, 20].map(retryAfter)).toEqual([1_000, 2_000, 4_000, 60_000, 60_000]);
});
