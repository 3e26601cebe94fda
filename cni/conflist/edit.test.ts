import fc from "fast-check";
import { chained, isChained, listOf, unchained } from "./edit";
import { type Config, readConfig } from "./read";

const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString();
const stanza = { name: "linkerd-cni", type: "linkerd-cni", linkerd: { "incoming-proxy-port": 4143 } };

function list(text: string | Uint8Array): Extract<Config, { kind: "list" }> {
  const config = readConfig("10-x.conflist", Buffer.from(text));
  if (config.kind !== "list") throw new Error(JSON.stringify(config));
  return config;
}

const layouts: Readonly<Record<string, string>> = {
  compact: '{"name":"a","plugins":[{"type":"bridge"},{"type":"portmap"}]}',
  spaced: '{ "name": "a", "plugins": [ { "type": "bridge" } , { "type": "portmap" } ] }\n\n',
  indented:
    '{\n\t"name": "a",\n\t"plugins": [\n\t\t{\n\t\t\t"type": "bridge"\n\t\t}\n\t],\n\t"cniVersion": "1.0.0"\n}\n',
  "numbers that parsing would round":
    '{"name":"a","big":12345678901234567890,"x":1.0,"plugins":[{"type":"b","mtu":1e3}]}',
  "a repeated key": '{"plugins":[{"type":"old"}],"name":"a","plugins":[{"type":"b"}]}',
  "brackets in strings": '{"name":"]}\\"[","plugins":[{"type":"b","x":"],[\\\\"}],"args":{"plugins":[{"type":"no"}]}}',
  "an escaped key": '{"name":"a","pl\\u0075gins":[{"type":"b"}]}',
};

describe("the chain in a list", () => {
  test.each(Object.entries(layouts))(
    "of layout %s: exactly once, last, with all other bytes kept, and exactly undone",
    (_, text) => {
      const made = list(chained(list(text), stanza));
      expect(JSON.parse(textOf(made.bytes)).plugins).toEqual([...JSON.parse(text).plugins, stanza]);
      expect(isChained(made, stanza)).toBe(true);
      expect(chained(made, stanza)).toBe(made.bytes);
      expect(textOf(unchained(made))).toBe(text);
    },
  );

  test("follows the indentation of the other plugins", () => {
    expect(textOf(chained(list('{"name":"a","plugins":[\n  {"type":"b"}\n]}'), { type: "linkerd-cni" }))).toBe(
      '{"name":"a","plugins":[\n  {"type":"b"},\n  {\n    "type": "linkerd-cni"\n  }\n]}',
    );
  });

  test.each([
    ["in front", '{"name":"a","plugins":[{"type":"linkerd-cni"}, {"type":"b"}]}'],
    ["in the middle", '{"name":"a","plugins":[{"type":"b"},{"type":"linkerd-cni"},{"type":"c"}]}'],
    ["twice", '{"name":"a","plugins":[{"type":"linkerd-cni"},{"type":"b"},{"type":"linkerd-cni"}]}'],
    ["with other content", '{"name":"a","plugins":[{"type":"b"},{"type":"linkerd-cni","linkerd":{}}]}'],
  ])("a stanza %s is replaced by one at the end", (_, text) => {
    const types = JSON.parse(textOf(chained(list(text), stanza))).plugins.map(({ type }: { type: string }) => type);
    expect(types.filter((type: string) => type === "linkerd-cni")).toHaveLength(1);
    expect(types.at(-1)).toBe("linkerd-cni");
    expect(textOf(unchained(list(text)))).not.toContain("linkerd-cni");
  });

  test("leaves bytes that are not UTF-8 as they are", () => {
    const latin1 = Buffer.from('{"name":"a","plugins":[{"type":"b","x":"caf\xe9"}],"y":"\xff"}', "latin1");
    const made = chained(list(latin1), { ...stanza, name: "ü" });
    expect(Buffer.from(made).toString("latin1")).toContain('"caf\xe9"},{"name":"\xc3\xbc"');
    expect(isChained(list(made), { ...stanza, name: "ü" })).toBe(true);
    expect(unchained(list(made))).toEqual(new Uint8Array(latin1));
  });

  test("is exactly undone for any list and white space", () => {
    const plugin = fc.record({ type: fc.constantFrom("a", "b"), more: fc.jsonValue() });
    fc.assert(
      fc.property(fc.array(plugin, { minLength: 1 }), fc.jsonValue(), fc.nat(4), (plugins, args, indent) => {
        const text = JSON.stringify({ name: "n", args, plugins, last: args }, null, indent);
        const made = list(chained(list(text), stanza));
        expect(JSON.parse(textOf(made.bytes)).plugins).toEqual([...JSON.parse(text).plugins, stanza]);
        expect(textOf(unchained(made))).toBe(text);
      }),
    );
  });
});

test("a single plugin becomes a list with the same name and version", () => {
  const single = readConfig("10-x.conf", Buffer.from('{"cniVersion":"0.3.1","name":"n","type":"bridge","mtu":1}\n'));
  if (single.kind !== "single") throw new Error(JSON.stringify(single));
  expect(JSON.parse(textOf(listOf(single, "10-x", stanza)))).toEqual({
    cniVersion: "0.3.1",
    name: "n",
    plugins: [{ cniVersion: "0.3.1", name: "n", type: "bridge", mtu: 1 }, stanza],
  });
});
