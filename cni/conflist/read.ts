import { isObject, type JsonObject, syntaxProblem } from "../json";

/** Extensions of files that container runtimes read in their CNI configuration directory. */
const EXTENSIONS = [".conf", ".conflist", ".json"] as const;

/** Larger files are not CNI configurations. */
export const MAX_CONFIG_BYTES = 1024 * 1024;

/** The content of a configuration file as a container runtime understands it. */
export type Config =
  | {
      readonly kind: "list";
      readonly text: string;
      readonly types: readonly string[];
      readonly name: string;
      /** `loadOnlyInlinedPlugins`: runtimes do not append drop-ins to it. */
      readonly inlinedOnly: boolean;
    }
  | {
      readonly kind: "single";
      readonly text: string;
      readonly types: readonly [string];
      readonly name?: string;
      readonly cniVersion?: string;
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

const invalid = (reason: string): Config => ({ kind: "invalid", reason });

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function parse(text: string): { readonly value: unknown } | { readonly error: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { error: syntaxProblem(error) };
  }
}

function pluginType(plugin: unknown): string {
  const type = isObject(plugin) ? plugin["type"] : undefined;
  return typeof type === "string" ? type : "";
}

function readList(text: string, value: JsonObject): Config {
  const { name, cniVersion, plugins, loadOnlyInlinedPlugins: inlined } = value;
  if (typeof name !== "string" || name === "") return invalid(`"name" is missing or not a string`);
  if (cniVersion !== undefined && typeof cniVersion !== "string") return invalid(`"cniVersion" is not a string`);
  if (!Array.isArray(plugins)) return invalid(`"plugins" is missing or not a list`);
  if (plugins.length === 0) return invalid(`"plugins" is empty`);
  const types = plugins.map(pluginType);
  const untyped = types.indexOf("");
  if (untyped >= 0) return invalid(`"plugins" item ${untyped} has no "type"`);
  // libcni also accepts the value as text.
  const inlinedOnly = String(inlined).toLowerCase() === "true";
  return { kind: "list", text, types, name, inlinedOnly };
}

function readSingle(text: string, value: JsonObject): Config {
  const { name, cniVersion } = value;
  const type = pluginType(value);
  if (type === "") {
    return invalid(`"type" is missing${"plugins" in value ? "; a list needs a name ending in .conflist" : ""}`);
  }
  if (cniVersion !== undefined && typeof cniVersion !== "string") return invalid(`"cniVersion" is not a string`);
  return {
    kind: "single",
    text,
    types: [type],
    ...(typeof name === "string" ? { name } : {}),
    ...(cniVersion === undefined ? {} : { cniVersion }),
  };
}

/** Reads one file as containerd and CRI-O do: its name decides whether it is a list or a single plugin. */
export function readConfig(fileName: string, bytes: Uint8Array): Config {
  if (bytes.length === 0) return invalid("is empty");
  if (bytes.length > MAX_CONFIG_BYTES) return invalid(`is larger than ${MAX_CONFIG_BYTES} bytes`);
  const text = decode(bytes);
  if (text === undefined) return invalid("is not valid UTF-8");
  const parsed = parse(text);
  if ("error" in parsed) return invalid(`is not valid JSON: ${parsed.error}`);
  if (!isObject(parsed.value)) return invalid("is not a JSON object");
  return fileName.endsWith(".conflist") ? readList(text, parsed.value) : readSingle(text, parsed.value);
}
