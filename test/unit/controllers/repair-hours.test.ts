import { Bucket } from "../../../controllers/bucket";
import type { Clock } from "../../../controllers/clock";
import { BREAKER_POLICY, Breakers } from "../../../controllers/repair/breaker";
import { createInstruments } from "../../../controllers/repair/instruments";
import { Memory } from "../../../controllers/repair/memory";
import type { Pod } from "../../../controllers/repair/pod";
import { Repairer } from "../../../controllers/repair/repairer";
import { Roster } from "../../../controllers/repair/roster";
import { Surgery } from "../../../controllers/repair/surgery";
import type { ApiRequest, ApiResponse } from "../../../kubernetes/client";
import { failing, meshedPod, NODE, ownedBy, passed } from "../../support/meshed-pod";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const START = Date.parse("2026-01-01T00:00:00Z");

interface Deletion {
  readonly preconditions: { readonly uid: string };
}

interface Publication {
  readonly reason: string;
  readonly metadata: object;
}

const quiet = () => undefined;
const log = { trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet };

/** Enough to see that nothing holds it back. */
const MOST = 50;

interface Course {
  /** When a pod in a deleted one's place is broken. @default 1 s */
  readonly failsAfterMs?: number;
  /** When pods of the owner were created that work. */
  readonly goodAt?: readonly number[];
}

/** Hours of one node's repairs of one broken pod, in no time: the clock moves where somebody sleeps or asks. */
class Hours {
  /** In minutes. */
  readonly deletions: number[] = [];
  readonly pauses: number[] = [];
  private time = 0;
  private readonly owner = ownedBy("web", "StatefulSet");
  private readonly events: { readonly metadata: { readonly creationTimestamp: string } }[] = [];
  private readonly due: { readonly at: number; readonly act: () => void }[] = [];
  private readonly roster = new Roster(() => this.time, quiet);
  private readonly ending = new AbortController();

  constructor(private readonly course: Course) {}

  async run(hours: number): Promise<void> {
    this.arrive();
    this.due.push({ at: hours * HOUR, act: () => this.ending.abort() });
    const { roster, clock, send } = this;
    const { signal } = this.ending;
    const instruments = createInstruments();
    const limits = {
      breakers: new Breakers(BREAKER_POLICY),
      bucket: new Bucket({ perSecond: 1, burst: 10 }),
      deleteUnvalidated: false,
    };
    const surgery = new Surgery({ send, clock, log, instruments, reporter: "linkerd-cni-x7k2p" });
    const memory = new Memory({ send, clock, log, node: NODE, returnMs: BREAKER_POLICY.returnMs });
    const installerReady = async () => {
      this.pass(1);
      return true;
    };
    const tools = { roster, limits, surgery, memory, node: NODE, clock, log, instruments, installerReady, signal };
    await new Repairer(tools).run();
  }

  private readonly clock: Clock = {
    now: () => this.time,
    date: () => new Date(START + this.time),
    random: () => 0,
    sleep: async (ms) => this.pass(Math.min(ms, ...this.due.map(({ at }) => at - this.time))),
  };

  private pass(ms: number): void {
    this.time += ms;
    const now = this.due.filter(({ at }) => at <= this.time);
    for (const each of now) this.due.splice(this.due.indexOf(each), 1);
    for (const { act } of now) act();
  }

  /** The API server's times are whole seconds. */
  private stamp(at = this.time): string {
    return `${new Date(START + at).toISOString().slice(0, 19)}Z`;
  }

  private pod(status: object, at = this.time): Pod {
    return meshedPod("web-1", { metadata: { ...this.owner, creationTimestamp: this.stamp(at) }, status }) as Pod;
  }

  private arrive(): void {
    const pod = this.pod({});
    const fail = () => this.roster.apply({ type: "MODIFIED", object: { ...pod, status: failing } });
    this.roster.apply({ type: "ADDED", object: pod });
    this.due.push({ at: this.time + (this.course.failsAfterMs ?? SECOND), act: fail });
  }

  private readonly send = async ({ method, path, body }: ApiRequest): Promise<ApiResponse> => {
    this.pass(20);
    if (method === "DELETE") this.delete(body as Deletion);
    if (method === "POST") this.publish(body as Publication);
    const items = path.includes("/pods?") ? this.goodPods() : this.liveEvents();
    return { status: 200, body: JSON.stringify({ items }) };
  };

  private delete({ preconditions }: Deletion): void {
    this.roster.forget(preconditions.uid);
    this.arrive();
    if (this.deletions.push(Math.floor(this.time / MINUTE)) === MOST) this.ending.abort();
  }

  private publish(event: Publication): void {
    this.events.push({ ...event, metadata: { ...event.metadata, creationTimestamp: this.stamp() } });
    if (event.reason === "LinkerdCNIRepairSuspended") this.pauses.push(Math.floor(this.time / MINUTE));
  }

  private goodPods(): Pod[] {
    const made = (this.course.goodAt ?? []).filter((at) => at <= this.time);
    return made.map((at) => this.pod(passed, at));
  }

  /** Events live an hour. */
  private liveEvents() {
    return this.events.filter(({ metadata }) => Date.parse(metadata.creationTimestamp) > START + this.time - HOUR);
  }
}

/** When pods are deleted and the owner is left alone, in minutes. */
async function sixHours(course: Course) {
  const hours = new Hours(course);
  await hours.run(6);
  const { deletions, pauses } = hours;
  return { deletions, pauses };
}

const WEEK = 7 * 24 * HOUR;
/** One round more after each pause of 5, 10, 20, 40, then 60 minutes. */
const PAUSES = [0, 5, 15, 35, 75, 135, 195, 255, 315];
const [, ...TRIALS] = PAUSES;

test.each([
  ["alone", []],
  ["beside one that has worked for a week", [-WEEK]],
])("a pod that never works, %s, is deleted no more often than the pauses allow", async (_, goodAt) => {
  expect(await sixHours({ goodAt })).toEqual({ deletions: [0, 0, 0, ...TRIALS], pauses: PAUSES });
});

test("a pod that fails later than one comes back is left alone, too", async () => {
  const { deletions, pauses } = await sixHours({ failsAfterMs: 6 * MINUTE, goodAt: [-WEEK] });
  expect(deletions).toEqual([6, 12, 18, 29, 45, 71, 117, 183, 249, 315]);
  expect(pauses).toEqual([24, 35, 51, 77, 123, 189, 255, 321]);
});

test("rounds before a pod came that works do not count, and those after it do", async () => {
  const early = await sixHours({ failsAfterMs: 10 * SECOND, goodAt: [25 * SECOND] });
  expect(early.deletions.slice(0, 7)).toEqual([0, 0, 0, 0, 0, 6, 16]);
  expect(early.pauses.slice(0, 3)).toEqual([1, 6, 16]);
  const paused = await sixHours({ goodAt: [20 * MINUTE] });
  expect(paused.deletions).toEqual([0, 0, 0, 5, 15, 35, 35, 35, ...TRIALS.slice(3)]);
  expect(paused.pauses).toEqual(PAUSES);
});
