import { CniError, ErrorCode } from "./errors";
import { isObject, type JsonObject, refuse } from "./json";
import { memberSource } from "./json-source";
import type { NetworkConfig } from "./network-config";
import { requireResult } from "./result-types";
import { atLeast, type CniVersion, requireSupported } from "./versions";

/** The previous plugin's result from the runtime; undefined if absent. */
export function previousResult(source: JsonObject): JsonObject | undefined {
  const previous = source["prevResult"];
  if (previous === undefined || previous === null) return undefined;
  return isObject(previous) ? previous : refuse("prevResult", previous, "an object");
}

/** Members that a version added, by list; they are dropped for older versions. */
const ADDED: readonly (readonly [since: CniVersion, list: "interfaces" | "routes", names: readonly string[]])[] = [
  ["1.1.0", "interfaces", ["mtu", "socketPath", "pciID"]],
  ["1.1.0", "routes", ["mtu", "advmss", "priority", "table", "scope"]],
];

type Edit = (item: JsonObject) => JsonObject;

function without(names: readonly string[]): Edit {
  return (item) => Object.fromEntries(Object.entries(item).filter(([name]) => !names.includes(name)));
}

const addressFamily = (address: unknown) => (typeof address === "string" && address.includes(":") ? "6" : "4");
const addVersion: Edit = (item) => ({ version: addressFamily(item["address"]), ...item });

/** Applies an edit to every object of a list member; other values do not change. */
function editList(result: JsonObject, member: string, edit: Edit): JsonObject {
  const list = result[member];
  if (!Array.isArray(list)) return result;
  return { ...result, [member]: list.map((item) => (isObject(item) ? edit(item) : item)) };
}

function convertAddresses(result: JsonObject, from: CniVersion, to: CniVersion): JsonObject {
  const had = !atLeast(from, "1.0.0");
  const wants = !atLeast(to, "1.0.0");
  if (had === wants) return result;
  return editList(result, "ips", wants ? addVersion : without(["version"]));
}

function dropNewMembers(result: JsonObject, from: CniVersion, to: CniVersion): JsonObject {
  const dropped = ADDED.filter(([since]) => atLeast(from, since) && !atLeast(to, since));
  return dropped.reduce((kept, [, list, names]) => editList(kept, list, without(names)), result);
}

/** Before 0.3.0 a result had `ip4` and `ip6` instead of lists; the two forms cannot be converted. */
function refuseOldShape(from: CniVersion, to: CniVersion): void {
  if (atLeast(from, "0.3.0") === atLeast(to, "0.3.0")) return;
  throw new CniError(
    ErrorCode.incompatibleVersion,
    `prevResult: a result of version ${from} cannot be turned into one of version ${to}`,
  );
}

/** The result of an ADD as text, unchanged unless its version must change. */
export function resultText(config: NetworkConfig, version: CniVersion): string {
  const previous = previousResult(config.source);
  const result = passResult(previous, version);
  const untouched = previous?.["cniVersion"] === version ? memberSource(config.text, "prevResult") : undefined;
  return untouched ?? JSON.stringify(result);
}

/**
 * The result of an ADD: the previous plugin's result in the configuration's version, otherwise unchanged. Without a
 * previous result (called alone) it is empty. @throws CniError 1 for its version, 7 if it is not a result
 */
export function passResult(previous: JsonObject | undefined, version: CniVersion): JsonObject {
  if (previous === undefined) return { cniVersion: version };
  const given = previous["cniVersion"] ?? version;
  if (typeof given !== "string") return refuse("prevResult.cniVersion", given, "a string");
  const from = requireSupported(given || version, "prevResult");
  requireResult(previous, from);
  if (from === version) return { ...previous, cniVersion: version };
  refuseOldShape(from, version);
  const converted = dropNewMembers(convertAddresses(previous, from, version), from, version);
  return { ...converted, cniVersion: version };
}
