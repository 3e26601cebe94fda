import { Room } from "./room";

test("shares grow as far as all of them fit, and make room again once", () => {
  const room = new Room(10, 0);
  const [one, two] = [room.share(), room.share()];
  expect([one.grow(4), two.grow(6), one.grow(1)]).toEqual([true, true, false]);
  two.end();
  two.end();
  expect([two.grow(1), one.grow(7), one.grow(6)]).toEqual([false, false, true]);
  one.end();
  expect([room.share().grow(11), room.share().grow(10)]).toEqual([false, true]);
});

test("a small share fits however full it is", () => {
  const room = new Room(10, 3);
  const [large, small] = [room.share(), room.share()];
  expect([large.grow(2), large.grow(11), small.grow(3), small.grow(1)]).toEqual([true, true, true, false]);
  large.end();
  expect([small.grow(10), small.grow(1)]).toEqual([true, false]);
});
