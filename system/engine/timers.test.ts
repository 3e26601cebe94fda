import { Timers } from "./timers";

let now = 0;
let timers: Timers;
beforeEach(() => {
  now = 0;
  timers = new Timers(() => now);
});

const nothing = () => undefined;

it("runs what is due in the order of time, then of setting", () => {
  const ran: number[] = [];
  const delays = Array.from({ length: 500 }, (_, at) => ((at * 7919) % 97) + 1);
  for (const [index, delay] of delays.entries()) timers.set(() => ran.push(index), delay);
  const cleared = delays.map((_, index) => index).filter((index) => index % 3 === 0);
  const others = cleared.map((index) => timers.set(() => ran.push(-index), delays[index] as number));
  for (const timer of others) timers.clear(timer);
  now = 50;
  timers.runDue(nothing);
  now = 1000;
  timers.runDue(nothing);
  const order = [...delays.keys()].sort((one, other) => delays[one]! - delays[other]! || one - other);
  expect(ran).toEqual(order);
  expect(timers.untilNext()).toBeUndefined();
});

it("says how long it is until the next", () => {
  const first = timers.set(nothing, 20);
  timers.set(nothing, 30.5);
  now = 5;
  expect(timers.untilNext()).toBe(15);
  timers.clear(first);
  timers.clear(first);
  expect(timers.untilNext()).toBe(25.5);
  now = 100;
  expect(timers.untilNext()).toBe(0);
});

it.each([0, -5, Number.NaN, 2 ** 31, Number.POSITIVE_INFINITY])("waits a millisecond for a delay of %d", (delay) => {
  timers.set(nothing, delay);
  expect(timers.untilNext()).toBe(1);
});

it("leaves what a callback sets for the next time, and what it clears", () => {
  const ran: string[] = [];
  const again = () => {
    ran.push("again");
    timers.set(again, 0);
    timers.clear(last);
  };
  timers.set(again, 1);
  const last = timers.set(() => ran.push("cleared"), 1);
  now = 2;
  timers.runDue(() => ran.push("after"));
  expect(ran).toEqual(["again", "after"]);
  now = 3;
  timers.runDue(nothing);
  expect(ran).toEqual(["again", "after", "again"]);
});
