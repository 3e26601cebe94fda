import { systemClock } from "./clock";

test("a pause ends with its signal, given before it or during it", async () => {
  const stop = new AbortController();
  const pause = systemClock.sleep(2 ** 31 - 1, stop.signal);
  stop.abort();
  await pause;
  await systemClock.sleep(2 ** 31 - 1, stop.signal);
});

test("pauses leave nothing at a signal that outlives them", async () => {
  const { signal } = new AbortController();
  const [added, removed] = [jest.spyOn(signal, "addEventListener"), jest.spyOn(signal, "removeEventListener")];
  await systemClock.sleep(1, signal);
  expect(added.mock.calls.map(([, listener]) => listener)).toEqual(removed.mock.calls.map(([, listener]) => listener));
});
