import { posix } from "node:path";
import { array, assert, constantFrom, property } from "fast-check";
import { basename, dirname, join, resolve } from "./path";

const paths = array(constantFrom("/", "/", ".", "..", "a", "b.c", "ä"), { maxLength: 8 }).map((parts) =>
  parts.join(""),
);

test("paths are those of node:path", () => {
  assert(
    property(paths, paths, (one, other) => {
      expect(join(one, other)).toBe(posix.join(one, other));
      expect(resolve(`/${one}`, other)).toBe(posix.resolve(`/${one}`, other));
      // Two slashes at the beginning are Node's own thing there.
      if (!one.startsWith("//")) expect(dirname(one)).toBe(posix.dirname(one));
      expect(basename(one)).toBe(posix.basename(one));
    }),
    { numRuns: 2_000 },
  );
});
