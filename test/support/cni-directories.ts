/** CNI configuration directories at random: mostly what runtimes load, with all that Go's reading of JSON is known for. */
import * as fc from "fast-check";
import type { Directory } from "./cni-loaders";

/** Mostly what is valid, so that a directory is not nearly always refused. */
const usual = (valid: readonly string[], odd: readonly string[], weight = 12) =>
  fc.oneof({ weight, arbitrary: fc.constantFrom(...valid) }, { weight: 1, arbitrary: fc.constantFrom(...odd) });

const scalar = fc.constantFrom("null", "true", "false", '"true"', '"x"', '""', "1", "-0.5", "1e400", "1e-400");
const broken = fc.constantFrom("", "{", "[1,]", "01", "nul", '"\t"', "\u00e9", "{'a':1}");
const { value: anything } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    { weight: 6, arbitrary: scalar },
    { weight: 1, arbitrary: fc.array(tie("value"), { maxLength: 2 }).map((all) => `[${all.join(",")}]`) },
    {
      weight: 2,
      arbitrary: fc
        .array(fc.tuple(fc.constantFrom("type", "Type", "a", "mac"), tie("value")), { maxLength: 2 })
        .map(objectOf),
    },
  ),
}));
const odd = fc.oneof({ weight: 30, arbitrary: anything }, { weight: 1, arbitrary: broken });

function objectOf(members: readonly (readonly [key: string, value: string])[]): string {
  return `{${members.map(([key, value]) => `"${key}":${value}`).join(",")}}`;
}

const sometimes = <T>(arbitrary: fc.Arbitrary<T>, percent: number) =>
  fc.oneof({ weight: percent, arbitrary }, { weight: 100 - percent, arbitrary: fc.constant(null) });

/** Members with some of their values replaced, and in any order. */
const members = (
  ...all: readonly (readonly [keys: readonly string[], valid: readonly string[], percent: number])[]
): fc.Arbitrary<string> =>
  fc
    .tuple(
      ...all.map(([keys, valid, percent]) =>
        sometimes(
          fc.tuple(
            usual(keys.slice(0, 1), keys),
            fc.oneof({ weight: 25, arbitrary: fc.constantFrom(...valid) }, { weight: 1, arbitrary: odd }),
          ),
          percent,
        ),
      ),
      sometimes(fc.tuple(fc.constantFrom("type", "TYPE", "name", "ipam", "dns", "x"), odd), 15),
    )
    .map((found) => found.filter((each) => each !== null))
    .chain((found) => fc.shuffledSubarray(found, { minLength: found.length }))
    .map(objectOf);

const TYPE = ["type", "Type", "TYPE", "typ\\u0065"] as const;
const plugin = members(
  [TYPE, ['"bridge"', '"portmap"', '"tuning"'], 98],
  [["name", "NAME"], ['"n"', '"m"', '""'], 20],
  [["cniVersion", "cniversion"], ['"1.0.0"', '"0.3.1"'], 20],
  [["capabilities", "Capabilities"], ["{}", '{"mac":true}', '{"mac":null}', '{"mac":1}'], 20],
  [["ipam", "IPAM"], ["{}", '{"type":"a"}', '{"TYPE":"a","type":null}', '{"type":[]}'], 20],
  [
    ["dns", "DNS", "dn\u00c5\u00bf"],
    ["{}", '{"search":["a"],"domain":"b"}', '{"Options":[null]}', '{"search":"a"}'],
    20,
  ],
  [["prevResult"], ["{}", "null", '{"a":1}'], 8],
  [["cni.dev/valid-attachments"], ["[]", '[{"ifname":"a"}]', '[{"IfName":1}]'], 8],
);
const list = fc
  .tuple(
    fc.array(plugin, { minLength: 1, maxLength: 3 }).map((all) => `[${all.join(",")}]`),
    fc.constantFrom("[]", "null", "{}"),
  )
  .chain(([plugins, none]) =>
    members(
      [["plugins", "Plugins"], [...Array<string>(25).fill(plugins), none], 95],
      [["name", "Name"], ['"n"', '"m"', '"o"'], 98],
      [["cniVersion", "CNIVersion"], ['"1.0.0"', '"0.3.1"', '""'], 40],
      [["cniVersions"], ["[]", '["1.0.0","0.4.0"]', '["1"]', '["x"]', '"1.0.0"'], 10],
      [["disableCheck"], ["true", "false", '"True"'], 10],
      [["disableGC"], ["true", "false", '"FALSE"'], 10],
      [["loadOnlyInlinedPlugins"], ["true", "false", '"true"'], 10],
    ),
  );
const around = usual([""], [" ", "\n", "\u00ef\u00bb\u00bf", "x", "\f"], 30);
/** No empty names: libcni then appends the directory's own files, and refuses each ADD. */
const file = (content: fc.Arbitrary<string>) =>
  fc
    .tuple(around, content, around)
    .map(([before, text, after]) => `${before}${text.replaceAll(/"(name)":""/gi, '"$1":"n"')}${after}`);

const name = (stems: readonly string[], endings: readonly string[]) =>
  fc.tuple(fc.constantFrom(...stems), fc.constantFrom(...endings)).map((parts) => parts.join(""));
const stems = ["05-a", "10-b", "A", "a"];

/** A directory, written down. */
export const directories: fc.Arbitrary<Directory> = fc
  .tuple(
    fc.array(fc.tuple(name(stems, [".conflist"]), file(list)), { minLength: 1, maxLength: 2 }),
    fc.array(fc.tuple(name(stems, [".conf", ".json"]), file(plugin)), { maxLength: 1 }),
    fc.array(fc.tuple(name(["n/1", "n/99-z", "m/1"], [".conf"]), file(plugin)), { maxLength: 2 }),
    sometimes(fc.constantFrom("n", "o"), 5),
  )
  .map(([lists, singles, dropins, name]) => ({
    ...Object.fromEntries([...lists, ...singles, ...dropins]),
    ...(name === null || dropins.some(([path]) => path.startsWith(`${name}/`)) ? {} : { [name]: "x" }),
  }));
