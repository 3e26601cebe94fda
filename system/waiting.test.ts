import { Waiting } from "./waiting";

let now = 0;
beforeEach(() => {
  now = 0;
  jest.spyOn(performance, "now").mockImplementation(() => now);
});
afterEach(() => jest.restoreAllMocks());

function waiting(most: number) {
  const ended: number[] = [];
  return { ended, made: new Waiting<number>(most, (each) => void ended.push(each)) };
}

test("the connections that have waited longest make room, once they had their time", () => {
  const { ended, made } = waiting(2);
  for (const each of [1, 2, 3]) made.add(each);
  expect(made.makeRoom(3)).toBe(true);
  expect(ended).toEqual([]);
  now = 2_000;
  made.add(1);
  expect(made.makeRoom(3)).toBe(true);
  expect(ended).toEqual([2, 3]);
  expect(made.makeRoom(1)).toBe(true);
  made.clear();
  expect(ended).toEqual([2, 3, 1]);
});

test("those that have waited too long are ended, and it is told when the next one is due", () => {
  const { ended, made } = waiting(9);
  for (const each of [1, 2, 3]) {
    now = each;
    made.add(each);
  }
  now = 12;
  expect([made.expire(10), ended, made.size]).toEqual([1, [1, 2], 1]);
  now = 13;
  expect([made.expire(10), ended]).toEqual([undefined, [1, 2, 3]]);
  for (const each of [4, 5]) made.add(each);
  made.clear();
  expect([ended, made.size]).toEqual([[1, 2, 3, 4, 5], 0]);
});

test("the half that has waited longest is ended, at least one", () => {
  const { ended, made } = waiting(9);
  for (const each of [1, 2, 3]) made.add(each);
  expect([made.halve(), ended]).toEqual([true, [1, 2]]);
  expect([made.halve(), ended]).toEqual([true, [1, 2, 3]]);
  expect(made.halve()).toBe(false);
});

test("there is no room if none waits, and an end to patience if very many do", () => {
  const { ended, made } = waiting(2);
  expect(made.makeRoom(2)).toBe(false);
  for (let each = 0; each < 2048; each++) made.add(each);
  expect(made.makeRoom(2047)).toBe(true);
  expect(ended).toEqual([]);
  expect(made.makeRoom(2048)).toBe(true);
  expect(ended).toEqual([0, 1]);
});
