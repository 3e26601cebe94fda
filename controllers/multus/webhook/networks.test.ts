import * as fc from "fast-check";
import { withNetwork } from "./networks";

const extend = (value: string) => withNetwork(value, "linkerd-cni", "shop");

test.each([
  // No networks yet.
  ["", "linkerd-cni"],
  ["[]", '[{"name":"linkerd-cni"}]'],
  // Lists.
  ["macvlan", "macvlan,linkerd-cni"],
  ["macvlan@eth1", "macvlan@eth1,linkerd-cni"],
  [" net / macvlan @ eth1 ", " net / macvlan @ eth1 ,linkerd-cni"],
  ["null", "null,linkerd-cni"],
  ["linkerd-cni-2,other-linkerd-cni", "linkerd-cni-2,other-linkerd-cni,linkerd-cni"],
  // The definition of another namespace is another network.
  ["other/linkerd-cni", "other/linkerd-cni,linkerd-cni"],
  // JSON: what stands there stays as it is, byte by byte.
  ['[{"name":"macvlan"}]', '[{"name":"macvlan"},{"name":"linkerd-cni"}]'],
  [
    '[\n  { "name": "a", "cni-args": {"id": 12345678901234567890, "x": 1.0} }\n]\n',
    '[\n  { "name": "a", "cni-args": {"id": 12345678901234567890, "x": 1.0} },{"name":"linkerd-cni"}]\n',
  ],
  [
    '[{"name":"linkerd-cni","namespace":"other"}]',
    '[{"name":"linkerd-cni","namespace":"other"},{"name":"linkerd-cni"}]',
  ],
  // Members that Multus does not know may differ in case alone.
  ['[{"name":"a","x":1,"X":2}]', '[{"name":"a","x":1,"X":2},{"name":"linkerd-cni"}]'],
  // Whole numbers of 64 bits.
  [
    '[{"name":"a","bandwidth":{"ingressRate":9223372036854775807,"egressRate":-9007199254740993}}]',
    '[{"name":"a","bandwidth":{"ingressRate":9223372036854775807,"egressRate":-9007199254740993}},{"name":"linkerd-cni"}]',
  ],
])("%j becomes %j, and then does not change", (value, extended) => {
  expect(extend(value)).toBe(extended);
  expect(extend(extended)).toBe(extended);
});

test.each([
  "linkerd-cni",
  " linkerd-cni ",
  "linkerd-cni@eth1",
  "shop/linkerd-cni",
  "a,shop/linkerd-cni@net7,b",
  "macvlan, linkerd-cni",
  '[{"name":"linkerd-cni"}]',
  '[{"name":"a"},{"name":"linkerd-cni","namespace":"shop","interface":"l5d0"}]',
  '[{"name":"linkerd-cni","namespace":null}]',
  '[{"Name":"linkerd-cni"}]',
  '[{"name":"link\\u0065rd-cni"}]',
])("%j has the network", (value) => {
  expect(extend(value)).toBe(value);
});

// Multus refuses all of these, with what is appended as without it: it says so in an Event of the pod.
test.each(["a/b/c", "a@b@c", "Macvlan", "a b", "a@sixteen--letters", "a,", ",", "a,,b", "ns/", "@eth1"])(
  "%j is extended, and Multus judges it",
  (value) => {
    expect(extend(value)).toBe(`${value},linkerd-cni`);
  },
);

test.each(["[null]", '["a"]', "[[]]", "[{}]", '[{"name":5}]', '[{"name":"a","ips":"10.0.0.1"}]'])(
  "%j is extended, and Multus judges it",
  (value) => {
    expect(extend(value)).toBe(`${value.slice(0, -1)},{"name":"linkerd-cni"}]`);
  },
);

test.each(['a,"b"', "[a]", '[{"name":"a"}', '[{"name":"a"}],linkerd-cni', '{"name":"a"}', '"a"'])(
  "nothing can be appended to %j",
  (value) => {
    expect(extend(value)).toBeUndefined();
  },
);

/** All that a pod's annotations may hold. */
const MOST = 262_144;

// A user who may create a pod chooses the value: parsing it must not take longer than reading it.
test.each<readonly [string, string]>([
  ["spaces inside", `a${" ".repeat(MOST - 2)}b`],
  ["spaces at the end", `a${" ".repeat(MOST - 1)}`],
  ["letters", "A".repeat(MOST)],
  ["items", "a,".repeat(MOST / 2)],
  ["separators", "@".repeat(MOST)],
  ["members", `[{${Array.from({ length: MOST / 16 }, (_, index) => `"k${index}":1`).join()}}]`],
  ["lists", `[${"[".repeat(MOST / 2 - 1)}${"]".repeat(MOST / 2 - 1)}]`],
])("as many %s as fit are extended", (_, value) => {
  expect(value.length).toBeLessThanOrEqual(MOST);
  const [end, added] = value.endsWith("]") ? [-1, ',{"name":"linkerd-cni"}]'] : [undefined, ",linkerd-cni"];
  expect(extend(value) === `${value.slice(0, end)}${added}`).toBe(true);
});

test("any value stays, followed by the network once, and then does not change", () => {
  const [list, element] = [
    fc.constantFrom("linkerd-cni", "shop/linkerd-cni", "a", "ns/b@eth0", " ", ""),
    fc.record({ name: fc.string(), namespace: fc.string(), ips: fc.constant(["10.0.0.1"]) }),
  ];
  const text = fc.oneof(
    { weight: 3, arbitrary: fc.array(list).map((all) => all.join(",")) },
    { weight: 3, arbitrary: fc.array(element, { maxLength: 4 }).map((all) => JSON.stringify(all, undefined, 2)) },
    { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom(..."ab-/@, \t:0A\u00a0") }) },
    { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom(..."ab-/@, \t[]{}\"':0A\u00a0") }) },
    { weight: 1, arbitrary: fc.json() },
  );
  const runs = 2_000;
  let extended = 0;
  fc.assert(
    fc.property(text, (value) => {
      const result = extend(value);
      if (result === undefined) return;
      extended += 1;
      expect(extend(result)).toBe(result);
      expect(names(result).filter((name) => name === "linkerd-cni").length).toBeGreaterThan(0);
      expect(names(result).slice(0, names(value).length)).toEqual(names(value));
    }),
    { numRuns: runs },
  );
  expect(extended).toBeGreaterThan(0.75 * runs);
});

/** What a value names, by its specification. */
function names(value: string): unknown[] {
  if (value.replace(/[\s\u0085]/g, "") === "") return [];
  if (/[[{"]/.test(value)) return (JSON.parse(value) as ({ name?: unknown } | null)[]).map((each) => each?.name);
  return value.split(",").map((item) => item.split("@")[0]?.split("/").at(-1)?.trim());
}
