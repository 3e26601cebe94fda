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
  [
    "without plugins, none in a folder",
    "a.conflist",
    '{"name":"a","loadOnlyInlinedPlugins":true}',
    '"plugins" is missing',
  ],
  ["with plugins that are not a list", "a.conflist", '{"name":"a","plugins":{"type":"b"}}', "not a list"],
  ["with no plugin", "a.conflist", '{"name":"a","plugins":[]}', "is empty"],
  ["with an untyped plugin", "a.conflist", '{"name":"a","plugins":[{"type":"b"},{}]}', '"plugins[1].type" is missing'],
  ["with a plugin that is no object", "a.conflist", '{"name":"a","plugins":["b"]}', '"plugins[0]" is not an object'],
  [
    "with a wrong field",
    "a.conflist",
    '{"name":"a","plugins":[{"type":"b","ipam":5}]}',
    '"plugins[0].ipam" is not an object',
  ],
  ["with a wrong inner field", "a.conf", '{"type":"b","DNS":{"search":["x",1]}}', '"DNS.search" is not a string'],
  [
    "with a wrong capability",
    "a.conf",
    '{"type":"b","capabilities":{"mac":1}}',
    '"capabilities.mac" is not true or false',
  ],
  ["with a large number", "a.conf", '{"type":"b","x":[1e400]}', "contains a number that is too large"],
  ["a list under a single plugin's name", "a.conf", '{"name":"a","plugins":[{"type":"b"}]}', "ending in .conflist"],
  ["with a version that is a number", "a.conf", '{"cniVersion":1,"type":"b"}', '"cniVersion" is not a string'],
])("a file that is %s is invalid", (_, name, text, reason) => {
  expect(readConfig(name, bytes(text))).toEqual({ kind: "invalid", reason: expect.stringContaining(reason) });
});

test.each([
  ["large", Buffer.alloc(2 * 2 ** 20 + 1, 32), "is larger than 2097152 bytes"],
  ["deep", bytes(`{"type":"b","x":${"[".repeat(1000)}${"]".repeat(1000)}}`), "nests deeper than 1000 levels"],
])("a file that is too %s for this program is invalid before it is parsed or edited", (_, content, reason) => {
  expect(readConfig("a.conf", content)).toEqual({ kind: "invalid", reason });
});

test("versions of libcni differ: one may refuse what the other loads", () => {
  const read = (rest: string) => readConfig("a.conflist", bytes(`{"name":"a"${rest}}`));
  const [plugins, missing] = [',"plugins":[{"type":"b"}]', '"plugins" is missing or not a list'];
  expect(read("")).toMatchObject({ kind: "list", types: [], refused: { "1.1": missing } });
  expect(read(`${plugins},"disableCheck":"true"`)).toMatchObject({
    refused: { "1.1": '"disableCheck" is not true or false' },
  });
  expect(read(`${plugins},"disableGC":1`)).toMatchObject({ refused: { "1.3": '"disableGC" is not true or false' } });
  expect(read(plugins)).not.toHaveProperty("refused");
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
