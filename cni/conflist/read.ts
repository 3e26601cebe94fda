import { isObject, type Json, type JsonObject, syntaxProblem } from "../json";
import { itemsOf, measure, membersOf } from "../json-source";

/** Extensions of files that container runtimes read in their CNI configuration directory. */
const EXTENSIONS = [".conf", ".conflist", ".json"] as const;

/** Runtimes read larger and deeper files; this program's memory and stack are smaller. */
export const MAX_CONFIG_BYTES = 2 * 1024 * 1024;
const MAX_DEPTH = 1_000;

/** The version of a container runtime's libcni, as far as they differ: 1.3 also appends drop-ins to lists. */
export type Libcni = "1.1" | "1.3";

/** Why one version of libcni does not load what the other one loads. */
type Refused = Partial<Readonly<Record<Libcni, string>>>;

/** The content of a configuration file as a container runtime understands it. */
export type Config =
  | {
      readonly kind: "list";
      readonly bytes: Uint8Array;
      /** Empty if all plugins are drop-ins. */
      readonly types: readonly string[];
      readonly name: string;
      /** `loadOnlyInlinedPlugins`: runtimes do not append drop-ins to it. */
      readonly inlinedOnly: boolean;
      readonly refused?: Refused;
    }
  | {
      readonly kind: "single";
      readonly bytes: Uint8Array;
      readonly types: readonly [string];
      /** Empty if it has none. */
      readonly name: string;
      readonly cniVersion: string;
      readonly refused?: Refused;
    }
  | { readonly kind: "invalid"; readonly reason: string };

/** Whether container runtimes read a file with this name. */
export function isConfigName(name: string): boolean {
  return EXTENSIONS.some((extension) => name.endsWith(extension));
}

/** The order of file names in which runtimes look for their configuration: bytewise. */
export function compareNames(left: string, right: string): number {
  // UTF-8 keeps the order of code points; UTF-16 does not.
  const [ours, theirs] = [[...left], [...right]];
  const at = ours.findIndex((character, index) => character !== theirs[index]);
  if (at < 0) return ours.length - theirs.length;
  return (ours[at]?.codePointAt(0) ?? 0) - (theirs[at]?.codePointAt(0) ?? -1);
}

/** The Go type of a field in libcni: encoding/json refuses values of other types. */
type GoType = "string" | "bool" | "any" | { readonly list: GoType } | { readonly map: GoType } | Struct;
interface Struct {
  readonly struct: Readonly<Record<string, GoType>>;
}

const TEXTS: GoType = { list: "string" };
/** The fields of a plugin's configuration that libcni reads itself. */
const PLUGIN: Struct = {
  struct: {
    cniVersion: "string",
    name: "string",
    type: "string",
    capabilities: { map: "bool" },
    ipam: { struct: { type: "string" } },
    dns: { struct: { nameservers: TEXTS, domain: "string", search: TEXTS, options: TEXTS } },
    prevResult: { map: "any" },
  },
};
const PLUGINS: Readonly<Record<Libcni, Struct>> = {
  "1.1": PLUGIN,
  "1.3": {
    struct: {
      ...PLUGIN.struct,
      "cni.dev/valid-attachments": { list: { struct: { containerID: "string", ifname: "string" } } },
    },
  },
};

/** The form of a field's name in which encoding/json compares it. */
const folded = (name: string): string => name.toLowerCase().replaceAll("\u017f", "s");

/** Why a runtime does not load a configuration. */
class Refusal extends Error {}

function refuse(reason: string): never {
  throw new Refusal(reason);
}

/** Refuses a value that is not of a Go type. null is of any type, and leaves a field as it is. */
function check(source: string, type: GoType, field: string): void {
  if (source === "null") return;
  const [first = ""] = source;
  if (type === "string") {
    if (first !== '"') refuse(`"${field}" is not a string`);
  } else if (type === "bool") {
    if (source !== "true" && source !== "false") refuse(`"${field}" is not true or false`);
  } else if (type === "any") {
    if (measure(source).isTooLarge) refuse(`"${field}" contains a number that is too large`);
  } else if ("list" in type) {
    if (first !== "[") refuse(`"${field}" is not a list`);
    for (const { start, end } of itemsOf(source)) check(source.slice(start, end), type.list, field);
  } else {
    if (first !== "{") refuse(`"${field}" is not an object`);
    if ("struct" in type) checkFields(source, type, `${field}.`);
    else
      for (const { key, start, end } of membersOf(source)) check(source.slice(start, end), type.map, `${field}.${key}`);
  }
}

/** Reads an object into a struct. @returns the sources of the fields that are not null; the last of repeated ones */
function checkFields(source: string, { struct }: Struct, prefix: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const { key, start, end } of membersOf(source)) {
    const field = Object.keys(struct).find((name) => folded(name) === folded(key));
    if (field === undefined) continue;
    const value = source.slice(start, end);
    check(value, struct[field] as GoType, `${prefix}${key}`);
    if (value !== "null") found.set(field, value);
  }
  return found;
}

interface Plugin {
  readonly type: string;
  readonly name: string;
  readonly cniVersion: string;
}

/** Reads a plugin's configuration as Go reads JSON into a struct. */
function readPlugin(source: string, libcni: Libcni, prefix = ""): Plugin {
  if (source[0] !== "{") refuse(prefix === "" ? "is not a JSON object" : `"${prefix}" is not an object`);
  const found = checkFields(source, PLUGINS[libcni], prefix && `${prefix}.`);
  const textOf = (field: string): string => JSON.parse(found.get(field) ?? '""');
  const [type, name, cniVersion] = [textOf("type"), textOf("name"), textOf("cniVersion")];
  if (type !== "") return { type, name, cniVersion };
  const hint = membersOf(source).some(({ key }) => key === "plugins")
    ? "; a list needs a name ending in .conflist"
    : "";
  return refuse(`"${prefix && `${prefix}.`}type" is missing${hint}`);
}

/** A plugin in a list. libcni has read the list, and written the plugin again with its keys in order. */
function readListed(plugin: Json | undefined, libcni: Libcni, index: number): string {
  const sorted = isObject(plugin)
    ? Object.fromEntries(Object.entries(plugin).sort(([left], [right]) => compareNames(left, right)))
    : plugin;
  return readPlugin(JSON.stringify(sorted), libcni, `plugins[${index}]`).type;
}

/** A version as libcni compares it; an empty one is 0.1.0. */
const isVersion = (value: unknown): boolean =>
  typeof value === "string" && /^([+-]?\d{1,18}(\.[+-]?\d{1,18}){0,2})?$/.test(value);

/** A boolean of a list, which libcni 1.3 also accepts as text. */
function flag(list: JsonObject, key: string, libcni: Libcni): boolean {
  const value = key in list ? list[key] : false;
  const isText = libcni === "1.3" && typeof value === "string" && /^(true|false)$/i.test(value);
  if (typeof value !== "boolean" && !isText) refuse(`"${key}" is not true or false`);
  return String(value).toLowerCase() === "true";
}

function readList(bytes: Uint8Array, list: JsonObject, libcni: Libcni): Config {
  const { name, cniVersion = "", cniVersions = [], plugins } = list;
  if (typeof name !== "string") return refuse(`"name" is missing or not a string`);
  if (typeof cniVersion !== "string") refuse(`"cniVersion" is not a string`);
  flag(list, "disableCheck", libcni);
  const is1_3 = libcni === "1.3";
  if (is1_3) {
    if (!Array.isArray(cniVersions) || !cniVersions.every(isVersion)) refuse(`"cniVersions" is not a list of versions`);
    if ("cniVersions" in list && !isVersion(cniVersion)) refuse(`"cniVersion" is not a version`);
    flag(list, "disableGC", libcni);
  }
  const inlinedOnly = is1_3 && flag(list, "loadOnlyInlinedPlugins", libcni);
  if (plugins === undefined && is1_3 && !inlinedOnly) return { kind: "list", bytes, types: [], name, inlinedOnly };
  if (!Array.isArray(plugins)) return refuse(`"plugins" is missing or not a list`);
  if (plugins.length === 0) refuse(`"plugins" is empty`);
  const types = plugins.map((plugin, index) => readListed(plugin, libcni, index));
  return { kind: "list", bytes, types, name, inlinedOnly };
}

/** The text of a file. Like Go, it reads malformed UTF-8 as U+FFFD. */
function decode(bytes: Uint8Array): string {
  if (bytes.length === 0) refuse("is empty");
  if (bytes.length > MAX_CONFIG_BYTES) refuse(`is larger than ${MAX_CONFIG_BYTES} bytes`);
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

interface Parsed {
  readonly source: string;
  readonly value: Json;
  /** A number in it is too large for Go. */
  readonly isTooLarge: boolean;
}

function parse(bytes: Uint8Array): Parsed {
  const text = decode(bytes);
  const { depth, isTooLarge } = measure(text);
  if (depth > MAX_DEPTH) refuse(`nests deeper than ${MAX_DEPTH} levels`);
  try {
    return { source: text.trim(), value: JSON.parse(text), isTooLarge };
  } catch (error) {
    return refuse(`is not valid JSON: ${syntaxProblem(error)}`);
  }
}

function readSingle(bytes: Uint8Array, source: string, value: JsonObject, libcni: Libcni): Config {
  const { name, cniVersion } = readPlugin(source, libcni);
  return { kind: "single", bytes, types: [readListed(value, libcni, 0)], name, cniVersion };
}

const orInvalid = (read: () => Config): Config => {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { kind: "invalid", reason: error.message };
  }
};

function readAny(bytes: Uint8Array, isList: boolean): Config {
  const { source, value, isTooLarge } = parse(bytes);
  if (!isObject(value)) return refuse("is not a JSON object");
  if (isTooLarge) refuse("contains a number that is too large");
  const read = (libcni: Libcni) =>
    orInvalid(() => (isList ? readList(bytes, value, libcni) : readSingle(bytes, source, value, libcni)));
  const [config, older] = [read("1.3"), read("1.1")];
  if (config.kind === "invalid") {
    return older.kind === "invalid" ? config : { ...older, refused: { "1.3": config.reason } };
  }
  return older.kind === "invalid" ? { ...config, refused: { "1.1": older.reason } } : config;
}

/** A plan asks several times for what a file holds. */
const [lists, singles] = [new WeakMap<Uint8Array, Config>(), new WeakMap<Uint8Array, Config>()];

/**
 * Reads one file as containerd and CRI-O do: its name decides whether it is a list or a single plugin. It is invalid if
 * no version of libcni loads it.
 */
export function readConfig(fileName: string, bytes: Uint8Array): Config {
  const isList = fileName.endsWith(".conflist");
  const known = isList ? lists : singles;
  const config = known.get(bytes) ?? orInvalid(() => readAny(bytes, isList));
  known.set(bytes, config);
  return config;
}

/** Reads a drop-in. Other than in a file of its own, numbers that libcni does not use may be of any size. */
export function readDropin(bytes: Uint8Array): Config {
  return orInvalid(() => {
    const { name, cniVersion, type } = readPlugin(parse(bytes).source, "1.3");
    return { kind: "single", bytes, types: [type], name, cniVersion };
  });
}
