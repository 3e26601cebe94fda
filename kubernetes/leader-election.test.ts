import { createLog } from "../process/log";
import { KubernetesClient } from "./client";
import { claimed, LeaderElection, mayHold, released, sight } from "./leader-election";
import type { LeaseObject, LeaseSpec } from "./types";

/** A Lease in an API server. */
class LeaseApi {
  lease: LeaseObject | undefined;
  away = false;
  private version = 0;

  readonly client = new KubernetesClient(async ({ method = "GET", body }) => {
    if (this.away) throw new Error("away");
    const given = body as LeaseObject;
    const refused = (status: number, reason: string) => ({ status, body: JSON.stringify({ reason }) });
    if (method !== "POST" && this.lease === undefined) return refused(404, "NotFound");
    if (method === "POST" && this.lease !== undefined) return refused(409, "AlreadyExists");
    if (method === "PUT" && given.metadata?.resourceVersion !== this.lease?.metadata?.resourceVersion) {
      return refused(409, "Conflict");
    }
    if (method !== "GET") {
      this.version += 1;
      this.lease = { ...given, metadata: { ...given.metadata, resourceVersion: String(this.version) } };
    }
    return { status: 200, body: JSON.stringify(this.lease) };
  });
}

/** Processes with a shared clock, which advances from one pause to the next. */
class Processes {
  now = 0;
  readonly lines: string[] = [];
  private sleepers: { readonly at: number; readonly wake: () => void }[] = [];

  readonly clock = {
    now: () => this.now,
    date: () => new Date(this.now),
    random: () => 0,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        if (signal?.aborted === true) return resolve();
        const wake = () => {
          signal?.removeEventListener("abort", wake);
          resolve();
        };
        signal?.addEventListener("abort", wake);
        this.sleepers.push({ at: this.now + ms, wake });
      }),
  };

  start(client: KubernetesClient, identity: string) {
    const stop = new AbortController();
    const elected: number[] = [];
    const log = createLog("info", "plain", (line) => this.lines.push(line), identity);
    const options = { name: "l", namespace: "n", identity, elected: () => elected.push(this.now) };
    const election = new LeaderElection(options, { client, clock: this.clock, log });
    const running = election.run(stop.signal);
    const end = async () => {
      stop.abort();
      await running;
    };
    return { election, elected, end };
  }

  async pass(ms: number): Promise<void> {
    for (const end = this.now + ms; this.now < end; this.now += 500) {
      const due = this.sleepers.filter(({ at }) => at <= this.now);
      this.sleepers = this.sleepers.filter(({ at }) => at > this.now);
      for (const { wake } of due) wake();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

test("one leads and releases the lease; the other takes over at once", async () => {
  const api = new LeaseApi();
  const processes = new Processes();
  const one = processes.start(api.client, "one");
  await processes.pass(1_000);
  const other = processes.start(api.client, "other");
  await processes.pass(30_000);
  expect([one.election.leading, other.election.leading]).toEqual([true, false]);
  expect(api.lease?.spec).toMatchObject({ holderIdentity: "one", leaseTransitions: 0 });
  await one.end();
  expect(api.lease?.spec).toMatchObject({ holderIdentity: "" });
  expect(one.election.leading).toBe(false);
  await processes.pass(3_000);
  expect(other.election.leading).toBe(true);
  expect([one.elected.length, other.elected.length]).toEqual([1, 1]);
  expect(processes.lines.join("")).toMatch(/one: info: released the lease lease=l\nother: info: leads: /);
  await other.end();
});

test("a leader that cannot renew stops leading before another may begin", async () => {
  const api = new LeaseApi();
  const processes = new Processes();
  const one = processes.start(api.client, "one");
  await processes.pass(5_000);
  expect(one.election.leading).toBe(true);
  api.away = true;
  await processes.pass(11_000);
  expect(one.election.leading).toBe(false);
  await processes.pass(2_000);
  expect(processes.lines.join("")).toMatch(/one: warn: away lease=l\none: warn: does not lead any more/);
  api.away = false;
  await processes.pass(5_000);
  expect([one.election.leading, one.elected.length]).toEqual([true, 2]);
  await one.end();
});

test("a vanished leader is replaced after the lease's duration", async () => {
  const api = new LeaseApi();
  const processes = new Processes();
  api.lease = { metadata: { name: "l", namespace: "n" }, spec: { holderIdentity: "gone", leaseDurationSeconds: 15 } };
  const other = processes.start(api.client, "other");
  await processes.pass(14_000);
  expect(other.election.leading).toBe(false);
  await processes.pass(6_000);
  expect(other.election.leading).toBe(true);
  expect(api.lease?.spec).toMatchObject({ holderIdentity: "other", leaseTransitions: 1 });
  await other.end();
});

const date = new Date("2026-01-02T03:04:05.678Z");
const claim = { identity: "a", date, durationMs: 15_000 };
const other: LeaseSpec = {
  holderIdentity: "b",
  leaseDurationSeconds: 15,
  acquireTime: "2020-01-01T00:00:00.000000Z",
  renewTime: "2020-01-01T00:00:00.000000Z",
  leaseTransitions: 3,
};

test("a lease with old times expires only after it was seen unchanged for its duration", () => {
  const first = sight(undefined, other, 1_000);
  expect(mayHold(first, "a", 1_000)).toBe(false);
  expect(mayHold(sight(first, { ...other }, 15_999), "a", 15_999)).toBe(false);
  expect(mayHold(sight(first, { ...other }, 16_000), "a", 16_000)).toBe(true);
});

test("a renewal counts from when it was seen, whatever the other's clock", () => {
  const first = sight(undefined, other, 0);
  const renewed = sight(first, { ...other, renewTime: "2019-01-01T00:00:00.000000Z" }, 14_000);
  expect(mayHold(renewed, "a", 28_999)).toBe(false);
  expect(mayHold(renewed, "a", 29_000)).toBe(true);
});

test("our own lease and a free one can be taken at once", () => {
  expect(mayHold(sight(undefined, { ...other, holderIdentity: "a" }, 0), "a", 0)).toBe(true);
  expect(mayHold(sight(undefined, released(other, date), 0), "a", 0)).toBe(true);
  expect(mayHold(sight(undefined, {}, 0), "a", 0)).toBe(true);
});

test("taking counts a transition, renewing does not", () => {
  const taken = claimed(other, claim);
  expect(taken).toEqual({
    holderIdentity: "a",
    leaseDurationSeconds: 15,
    acquireTime: "2026-01-02T03:04:05.678000Z",
    renewTime: "2026-01-02T03:04:05.678000Z",
    leaseTransitions: 4,
  });
  const later = new Date("2026-01-02T03:04:07Z");
  expect(claimed(taken, { ...claim, date: later })).toEqual({ ...taken, renewTime: "2026-01-02T03:04:07.000000Z" });
  expect(claimed(undefined, claim)).toEqual({ ...taken, leaseTransitions: 0 });
  expect(released(taken, later)).toMatchObject({ holderIdentity: "", leaseTransitions: 4 });
});
