import { compareNames, isConfigName, readConfig } from "./read";

const bytes = (text: string) => Buffer.from(text);

test.each([
  ["10-a.conflist", true],
  ["10-a.conf", true],
  [".hidden.json", true],
  ["10-a.conflist.bak", false],
  ["ZZZ-linkerd-cni-kubeconfig", false],
  ["conflist", false],
])("%s is read by runtimes: %s", (name, expected) => expect(isConfigName(name)).toBe(expected));

test("names are ordered by their bytes, as Go does", () => {
  const names = ["é.conf", "a.conf", "Z.conf", "10-a.conflist", "10-a.conf", "\u{1F600}.conf", "\uFFFD.conf"];
  expect(names.sort(compareNames)).toEqual([
    "10-a.conf",
    "10-a.conflist",
    "Z.conf",
    "a.conf",
    "é.conf",
    "\uFFFD.conf",
    "\u{1F600}.conf",
  ]);
});

test.each([
  ["empty", "a.conflist", "", "is empty"],
  ["half-written", "a.conflist", '{"name":"a","plugins":[', "is not valid JSON"],
  ["with trailing data", "a.conflist", '{"name":"a","plugins":[{"type":"b"}]} x', "is not valid JSON"],
  ["with a byte order mark", "a.conflist", '\uFEFF{"name":"a","plugins":[{"type":"b"}]}', "is not valid JSON"],
  ["no object", "a.conflist", "[]", "is not a JSON object"],
  ["null", "a.conf", "null", "is not a JSON object"],
  ["without name", "a.conflist", '{"plugins":[{"type":"b"}]}', '"name" is missing'],
  ["without plugins", "a.conflist", '{"name":"a","type":"b"}', '"plugins" is missing'],
  ["with plugins that are not a list", "a.conflist", '{"name":"a","plugins":{"type":"b"}}', "not a list"],
  ["with no plugin", "a.conflist", '{"name":"a","plugins":[]}', "is empty"],
  ["with an untyped plugin", "a.conflist", '{"name":"a","plugins":[{"type":"b"},{}]}', "item 1 has no"],
  ["a list under a single plugin's name", "a.conf", '{"name":"a","plugins":[{"type":"b"}]}', "ending in .conflist"],
  ["with a version that is a number", "a.conf", '{"cniVersion":1,"type":"b"}', '"cniVersion" is not a string'],
])("a file that is %s is invalid", (_, name, text, reason) => {
  expect(readConfig(name, bytes(text))).toEqual({ kind: "invalid", reason: expect.stringContaining(reason) });
});

test("bytes that are not UTF-8, and too many of them, are invalid", () => {
  expect(readConfig("a.conf", Buffer.from([0x7b, 0xff, 0x7d]))).toMatchObject({ reason: "is not valid UTF-8" });
  expect(readConfig("a.conf", Buffer.alloc(2 ** 20 + 1, 32))).toMatchObject({ reason: "is larger than 1048576 bytes" });
});

test("the file's name distinguishes lists from single plugins", () => {
  expect(readConfig("a.conflist", bytes('{"name":"a","plugins":[{"type":"b"},{"type":"c"}]}'))).toMatchObject({
    kind: "list",
    types: ["b", "c"],
  });
  expect(readConfig("a.json", bytes('{"name":"a","cniVersion":"1.0.0","type":"b"}'))).toMatchObject({
    kind: "single",
    types: ["b"],
    name: "a",
    cniVersion: "1.0.0",
  });
});
