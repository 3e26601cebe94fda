import { NodePath } from "./contract";
import { isIdentifier } from "./environment";
import { CniError, ErrorCode } from "./errors";
import { isObject, type JsonObject, refuse, syntaxProblem } from "./json";
import { POD_ANNOTATIONS } from "./stanza";
import { IMPLIED_VERSION } from "./versions";

/** The configuration on standard input, with the checks common to all verbs. */
export interface NetworkConfig {
  /** As given, or the implied one; whether it is supported is checked for the verb. */
  readonly cniVersion: string;
  readonly name: string;
  /** The directory of the log of calls and the installer's socket. */
  readonly runDir: string;
  /** The whole input. */
  readonly source: JsonObject;
}

function decode(text: string): unknown {
  if (text.trim() === "") throw new CniError(ErrorCode.decoding, "standard input: no network configuration");
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CniError(ErrorCode.decoding, `standard input is not a JSON document: ${syntaxProblem(error)}`);
  }
}

function requireString(source: JsonObject, key: string): string {
  const value = source[key] ?? "";
  if (typeof value === "string") return value;
  throw new CniError(ErrorCode.decoding, `standard input: ${key} is not a string`);
}

/** @throws CniError 6 for undecodable input, 7 for missing or malformed fields */
export function parseNetworkConfig(text: string): NetworkConfig {
  const source = decode(text);
  if (source === null) throw new CniError(ErrorCode.config, "standard input: the network configuration is null");
  if (!isObject(source)) throw new CniError(ErrorCode.decoding, "standard input is not a JSON object");
  const cniVersion = requireString(source, "cniVersion") || IMPLIED_VERSION;
  const name = requireString(source, "name");
  if (name === "") throw new CniError(ErrorCode.config, "standard input: the network configuration has no name");
  if (!isIdentifier(name)) refuse("standard input: name", name, "a network's name (letters, digits, _, . and -)");
  const runDir = requireString(source, "run-dir") || NodePath.runDir;
  return { cniVersion, name, runDir, source };
}

/** The pod's annotations from the runtime; undefined if it does not support the capability. */
export function passedAnnotations(config: NetworkConfig): Readonly<Record<string, string>> | undefined {
  const runtime = config.source["runtimeConfig"];
  if (!isObject(runtime) || !(POD_ANNOTATIONS in runtime)) return undefined;
  const passed = runtime[POD_ANNOTATIONS] ?? {};
  if (!isObject(passed)) return refuse(`runtimeConfig.${POD_ANNOTATIONS}`, passed, "an object");
  const texts = Object.entries(passed).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return Object.fromEntries(texts);
}
