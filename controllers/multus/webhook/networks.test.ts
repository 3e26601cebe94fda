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
