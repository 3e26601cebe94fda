import * as fc from "fast-check";
import { withNetwork } from "./networks";

const extend = (value: string) => withNetwork(value, "linkerd-cni", "shop");

test.each([
  // No networks yet.
  ["", "linkerd-cni"],
  [" \t\n", "linkerd-cni"],
  ["[]", '[{"name":"linkerd-cni"}]'],
  [" [ ] ", ' [{"name":"linkerd-cni"}] '],
  // Lists.
  ["macvlan", "macvlan,linkerd-cni"],
  ["macvlan, sriov", "macvlan, sriov,linkerd-cni"],
  [" a , b\n", "a , b,linkerd-cni"],
  ["net/macvlan", "net/macvlan,linkerd-cni"],
  ["macvlan@eth1", "macvlan@eth1,linkerd-cni"],
  [" net / macvlan @ eth1 ", "net / macvlan @ eth1,linkerd-cni"],
  ["/macvlan", "/macvlan,linkerd-cni"],
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
  ['[{"name":"a","namespace":"linkerd-cni"}]', '[{"name":"a","namespace":"linkerd-cni"},{"name":"linkerd-cni"}]'],
  [
    '[{"name":"linkerd-cni","namespace":"other"}]',
    '[{"name":"linkerd-cni","namespace":"other"},{"name":"linkerd-cni"}]',
  ],
  ['[{"name":"a","mystery":[1]}]', '[{"name":"a","mystery":[1]},{"name":"linkerd-cni"}]'],
  // Members that Multus does not know may differ in case alone.
  ['[{"name":"a","x":1,"X":2}]', '[{"name":"a","x":1,"X":2},{"name":"linkerd-cni"}]'],
  [
    '[{"name":"a","bandwidth":{"x":1,"X":2},"portMappings":[{"s":1,"\u017f":2}]}]',
    '[{"name":"a","bandwidth":{"x":1,"X":2},"portMappings":[{"s":1,"\u017f":2}]},{"name":"linkerd-cni"}]',
  ],
  // Whole numbers of 64 bits.
  [
    '[{"name":"a","bandwidth":{"ingressRate":9223372036854775807,"egressRate":-9007199254740993}}]',
    '[{"name":"a","bandwidth":{"ingressRate":9223372036854775807,"egressRate":-9007199254740993}},{"name":"linkerd-cni"}]',
  ],
])("%j becomes %j, and stays so", (value, extended) => {
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

test.each([
  ["a/b/c", 'item "a/b/c" has more than one "/"'],
  ["a@b@c", 'item "a@b@c" has more than one "@"'],
  ["Macvlan", 'item "Macvlan": "Macvlan" is not a name of lower-case letters, digits and "-"'],
  ["a_b/c", 'item "a_b/c": "a_b" is not a name of lower-case letters, digits and "-"'],
  ["a b", 'item "a b": "a b" is not a name of lower-case letters, digits and "-"'],
  ["a@sixteen--letters", 'item "a@sixteen--letters": "sixteen--letters" is not an interface'],
  ["a@e th", 'item "a@e th": "e th" is not an interface'],
  ["a,", "item 2 names no network"],
  [",", "item 1 names no network"],
  ["a,,b", "item 2 names no network"],
  ["ns/", "item 1 names no network"],
  ["@eth1", "item 1 names no network"],
  ['a,"b"', "is neither a list of names nor JSON"],
  ["[a]", "is neither a list of names nor JSON"],
  ['[{"name":"a"}', "is neither a list of names nor JSON"],
  ['[{"name":"a"}],linkerd-cni', "is neither a list of names nor JSON"],
  ['{"name":"a"}', "the value: is not a list"],
  ['"a"', "the value: is not a list"],
  ["[null]", "[0]: is not an object"],
  ['["a"]', "[0]: is not an object"],
  ["[[]]", "[0]: is not an object"],
  ["[{}]", "item 1 names no network"],
  ['[{"name":5}]', "[0].name: is not a string"],
  ['[{"name":"a","Name":"b"}]', 'member "name" is there twice'],
  ['[{"name":"a","Name":null}]', 'member "name" is there twice'],
  ['[{"name":"a","bandwidth":{"ingressRate":1,"INGRESSRATE":2}}]', 'member "ingressrate" is there twice'],
  ['[{"name":"a","bandwidth":{"ingressRate":1.5}}]', "[0].bandwidth.ingressrate: is not a whole number"],
  ['[{"name":"a","bandwidth":{"ingressRate":1e300}}]', "[0].bandwidth.ingressrate: is not a whole number"],
  ['[{"name":"a"},{"name":"b","ips":"10.0.0.1"}]', "[1].ips: is not a list"],
  ['[{"name":"a","ips":["10.0.0.300"]}]', "[0].ips[0]: is not an IP address or subnet"],
  ['[{"name":"a","ips":["10.0.0.1/33"]}]', "[0].ips[0]: is not an IP address or subnet"],
  ['[{"name":"a","mac":"02:11:22"}]', "[0].mac: is not a hardware address"],
  ['[{"name":"a","cni-args":[]}]', "[0].cni-args: is not an object"],
  ['[{"name":"a","portMappings":[{"hostPort":"80"}]}]', "[0].portmappings[0].hostport: is not a whole number"],
  ['[{"name":"a","default-route":["gateway"]}]', "[0].default-route[0]: is not an IP address"],
])("%j is refused: %s", (value, problem) => {
  expect(() => extend(value)).toThrow(problem);
});

/** All that a pod's annotations may hold. */
const MOST = 262_144;

// Whoever may create a pod chooses the value: each of these once kept the webhook busy for minutes to hours.
test.each<readonly [string, string, string]>([
  ["spaces inside", `a${" ".repeat(MOST - 2)}b`, 'item "a '],
  ["one item", "A".repeat(MOST), 'item "AAA'],
  ["members", `[{${Array.from({ length: MOST / 16 }, (_, index) => `"k${index}":1`).join()}}]`, "item 1 names no"],
  ["the same member", `[{${Array.from({ length: MOST / 16 }, () => '"Name":1').join()},"name":1}]`, 'member "name" is'],
])("as many %s as fit are refused in a few words", (_, value, problem) => {
  expect(value.length).toBeLessThanOrEqual(MOST);
  let message = "";
  try {
    extend(value);
  } catch (error) {
    message = (error as Error).message;
  }
  expect(message).toContain(problem);
  expect(message.length).toBeLessThan(400);
});

test("what no pod's annotations can hold is not even read", () => {
  expect(() => extend("a".repeat(MOST + 1))).toThrow("is longer than the 262144 bytes that annotations may have");
  expect(extend(`a${" ".repeat(MOST - 1)}`)).toBe("a,linkerd-cni");
});

test("whatever stands there: refused, or valid with all that was there and the network once, and then as it is", () => {
  const text = fc.oneof(
    fc.string({ unit: fc.constantFrom(..."ab-/@, \t[]{}\"':0A\u00a0") }),
    fc.array(fc.constantFrom("linkerd-cni", "shop/linkerd-cni", "a", "ns/b@eth0", " ", "")).map((all) => all.join(",")),
    fc.json(),
    fc
      .array(fc.record({ name: fc.string(), namespace: fc.string(), ips: fc.constant(["10.0.0.1"]) }), { maxLength: 4 })
      .map((list) => JSON.stringify(list, undefined, 2)),
  );
  const attempt = (value: string) => {
    try {
      return extend(value);
    } catch (error) {
      expect((error as Error).name).toBe("NetworksError");
      return undefined;
    }
  };
  fc.assert(
    fc.property(text, (value) => {
      const extended = attempt(value);
      if (extended === undefined) return;
      expect(extend(extended)).toBe(extended);
      expect(names(extended).filter((name) => name === "linkerd-cni").length).toBeGreaterThan(0);
      expect(names(extended).slice(0, names(value).length)).toEqual(names(value));
    }),
    { numRuns: 2_000 },
  );
});

/** Names in a valid value, by its specification. */
function names(value: string): string[] {
  if (value.replace(/[\s\u0085]/g, "") === "") return [];
  if (/[[{"]/.test(value)) return (JSON.parse(value) as { name: string }[]).map(({ name }) => name);
  return value.split(",").map((item) => /([a-z0-9-]+)[^a-z0-9/]*(@.*)?$/.exec(item)?.[1] ?? "");
}
