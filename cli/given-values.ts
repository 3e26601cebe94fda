import { parse } from "yaml";
import { isObject } from "../cni/json";
import { overlaid } from "../constructs";
import { FORMER_VALUES, values } from "../constructs/values";
import { FROM_PARENTS } from "../helm/package";
import { nearest } from "../helm/read";
import { booleanOf, fieldOf, nameOf, optionName, VALUE_FLAGS, type ValueFlag } from "./flags";
import { complain, type Io, isUrl, withoutCredentials } from "./io";
import { asText, typed, withAssignments, withFile } from "./set";
import { YAML } from "./yaml";

type Map = Record<string, unknown>;

/** The flags that set values. */
export interface ValueOptions {
  readonly linkerdVersion?: string;
  readonly registry?: string;
  readonly values: readonly string[];
  readonly set: readonly string[];
  readonly setString: readonly string[];
  readonly setFile: readonly string[];
  readonly [flag: string]: unknown;
}

function nested(path: readonly string[], value: unknown): Map {
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Map;
}

/** The value of one flag. @throws an Error that names it */
function readFlag(flag: ValueFlag, given: unknown): unknown {
  // Without a text, the flag is a boolean and means true.
  if (typeof given === "boolean") return given;
  if (flag.flags.endsWith("[boolean]")) return booleanOf(nameOf(flag), String(given));
  return [given].flat().join(",");
}

function fromFlags(options: ValueOptions): Map {
  return VALUE_FLAGS.reduce<Map>((made, flag) => {
    const given = options[optionName(flag)];
    return given === undefined ? made : (overlaid(made, nested(flag.path, readFlag(flag, given))) as Map);
  }, {});
}

/** An image in another registry: as with linkerd's flags, only the last part of its name stays. */
const inRegistry = (registry: string, name: string): string =>
  `${registry.replace(/\/+$/, "")}/${name.split("/").at(-1) ?? ""}`;

/** A part of an image's reference. @throws an Error for characters that linkerd refuses, too */
function imagePart(origin: string, text: string): string {
  if (/^[\w.:/-]+$/.test(text)) return text;
  throw new Error(
    `${origin}: ${JSON.stringify(text)} is no part of an image's name: use letters, digits and . _ - / :`,
  );
}

/** `--linkerd-version` is the tag unless `--cni-image-version` is; the environment's registry wins over the flag's. */
function image(options: ValueOptions, io: Io): Map {
  const fromEnvironment = io.env["LINKERD_DOCKER_REGISTRY"];
  const registry = fromEnvironment || options.registry;
  const origin = fromEnvironment ? "LINKERD_DOCKER_REGISTRY" : "--registry";
  const { linkerdVersion: version } = options;
  const name = String(options["cniImage"] ?? fieldOf(["image", "name"]).default);
  return {
    ...(registry === undefined ? {} : { name: inRegistry(imagePart(origin, registry), name) }),
    ...(version === undefined || options["cniImageVersion"] !== undefined
      ? {}
      : { version: imagePart("--linkerd-version", version) }),
  };
}

/** Reads a file, standard input for `-`, or a URL. */
const contentOf = async (path: string, io: Io): Promise<string> => (isUrl(path) ? io.fetch(path) : io.readFile(path));

/** Reads the files that `--set-file` names. @returns their contents by path */
async function setFiles(texts: readonly string[], io: Io): Promise<ReadonlyMap<string, string>> {
  const paths = new Set<string>();
  const note = (path: string) => {
    paths.add(path);
    return "";
  };
  for (const text of texts) withFile({}, text, note);
  return new Map(await Promise.all([...paths].map(async (path) => [path, await contentOf(path, io)] as const)));
}

async function fromFile(path: string, io: Io): Promise<Map> {
  const text = await contentOf(path, io);
  const read: unknown = parse(text, YAML) ?? {};
  if (isObject(read)) return read;
  throw new Error(
    `${path === "-" ? "standard input" : isUrl(path) ? withoutCredentials(path) : path} is not a map of values`,
  );
}

/** The note on a given value that the chart does not have; undefined if it is no news, as in the chart's NOTES.txt. */
function unknownNote(name: string, value: unknown): string | undefined {
  if (value === null || FROM_PARENTS.includes(name)) return undefined;
  const reason = FORMER_VALUES[name];
  if (reason !== undefined) return `the value ${name} is ignored: ${reason}`;
  const meant = nearest(name, Object.keys(values));
  return `the chart has no value ${name}${meant === undefined ? ", which is ignored" : `: did you mean ${meant}?`}`;
}

/** The values that the chart has. Values that charts share are noted on standard error and left out. */
function knownValues(given: Map, io: Io): Map {
  const entries = Object.entries(given).filter(([name, value]) => {
    if (name in values) return true;
    const note = unknownNote(name, value);
    if (note !== undefined) complain(io, note);
    return false;
  });
  return Object.fromEntries(entries);
}

/** All given values that the chart has: `--set` overrides files, and files override flags, as in linkerd's `install-cni`. */
export async function givenValues(options: ValueOptions, io: Io): Promise<Map> {
  const flags = overlaid(fromFlags(options), { image: image(options, io) }) as Map;
  const paths = options.values.flatMap((each) => each.split(","));
  const files = await Promise.all(paths.map((path) => fromFile(path, io)));
  const contents = await setFiles(options.setFile, io);
  const readers = [
    ...options.set.map((text) => (made: Map) => withAssignments(made, text, typed)),
    ...options.setString.map((text) => (made: Map) => withAssignments(made, text, asText)),
    ...options.setFile.map((text) => (made: Map) => withFile(made, text, (path) => contents.get(path) ?? "")),
  ];
  const withFiles = files.reduce<Map>((made, file) => overlaid(made, file) as Map, flags);
  return knownValues(
    readers.reduce((made, read) => read(made), withFiles),
    io,
  );
}
