import { parse } from "yaml";
import { isObject } from "../cni/json";
import { overlaid } from "../constructs";
import { booleanOf, checkedBy, nameOf, optionName, REGISTRY, TAG, VALUE_FLAGS, type ValueFlag } from "./flags";
import type { Io } from "./io";
import { asText, typed, withAssignments, withFile } from "./set";
import { YAML } from "./yaml";

type Map = Record<string, unknown>;

/** What the command line says about values. */
export interface ValueOptions {
  readonly linkerdVersion?: string;
  readonly registry?: string;
  readonly values: readonly string[];
  readonly set: readonly string[];
  readonly setString: readonly string[];
  readonly setFile: readonly string[];
  readonly [flag: string]: unknown;
}

/** Where the image comes from unless a flag says otherwise. */
export const DEFAULT_REGISTRY = "ghcr.io/linkerd-cni-cdk8s";

function nested(path: readonly string[], value: unknown): Map {
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Map;
}

/** What one flag says. @throws an Error that names it */
function readFlag(flag: ValueFlag, given: unknown): unknown {
  // Without a text it is a boolean that is simply there.
  if (typeof given === "boolean") return given;
  if (flag.flags.endsWith("[boolean]")) return booleanOf(nameOf(flag), String(given));
  const texts = (Array.isArray(given) ? given : [given]).map(String);
  const { form } = flag;
  return (form === undefined ? texts : texts.map((text) => checkedBy(form, nameOf(flag), text))).join(",");
}

function fromFlags(options: ValueOptions): Map {
  return VALUE_FLAGS.reduce<Map>((made, flag) => {
    const given = options[optionName(flag)];
    return given === undefined ? made : (overlaid(made, nested(flag.path, readFlag(flag, given))) as Map);
  }, {});
}

/** `--linkerd-version` is the tag unless `--cni-image-version` is; the environment's registry wins over the flag's. */
function image(options: ValueOptions, io: Io): Map {
  const fromEnvironment = io.env["LINKERD_DOCKER_REGISTRY"];
  const registry = fromEnvironment || options.registry;
  const origin = fromEnvironment ? "LINKERD_DOCKER_REGISTRY" : "--registry";
  const { linkerdVersion: version } = options;
  return {
    ...(registry === undefined
      ? {}
      : { name: `${checkedBy(REGISTRY, origin, registry).replace(/\/+$/, "")}/linkerd-cni` }),
    ...(version === undefined ? {} : { version: checkedBy(TAG, "--linkerd-version", version) }),
  };
}

function fromFile(path: string, io: Io): Map {
  const read: unknown = parse(io.readFile(path), YAML) ?? {};
  if (isObject(read)) return read;
  throw new Error(`${path === "-" ? "standard input" : path} is not a map of values`);
}

/** All values that were given: `--set` goes over files, and files over flags, as in linkerd's `install-cni`. */
export function givenValues(options: ValueOptions, io: Io): Map {
  const flags = overlaid({ image: image(options, io) }, fromFlags(options)) as Map;
  const files = options.values.flatMap((paths) => paths.split(",")).map((path) => fromFile(path, io));
  const readers = [
    ...options.set.map((text) => (made: Map) => withAssignments(made, text, typed)),
    ...options.setString.map((text) => (made: Map) => withAssignments(made, text, asText)),
    ...options.setFile.map((text) => (made: Map) => withFile(made, text, io.readFile)),
  ];
  const withFiles = files.reduce<Map>((made, file) => overlaid(made, file) as Map, flags);
  return readers.reduce((made, read) => read(made), withFiles);
}
