/**
 * The form of a previous plugin's result: the types into which libcni decodes it (its `pkg/types/020`, `040` and
 * `100`). Runtimes also decode this plugin's answer into them: an invalid value would fail the pod later, without
 * naming its origin. Unknown members are ignored.
 */
import { CniError, ErrorCode } from "./errors";
import { isObject, type JsonObject, refuse } from "./json";
import { parseAddress } from "./subnets";
import { atLeast, type CniVersion } from "./versions";

/** Refuses an invalid value; `at` is its location, for the message. @throws CniError 7 */
type Type = (value: unknown, at: string) => void;

/** Go decodes null into any type, as if the member were absent. */
const where =
  (accept: (value: NonNullable<unknown>) => boolean, wanted: string): Type =>
  (value, at) => {
    if (value !== null && value !== undefined && !accept(value)) refuse(at, value, wanted);
  };

const isText = (value: unknown): value is string => typeof value === "string";
const text = where(isText, "a string");
/** 64 bits, as Go's integers. */
const integer = where(
  (value) => typeof value === "number" && Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 63,
  "a whole number",
);
const address = where((value) => isText(value) && (value === "" || parseAddress(value) !== undefined), "an IP address");

/** Unlike {@link parseSubnet}, takes a prefix with leading zeros, as Go's `net.ParseCIDR` does. */
function isCidr(value: unknown): boolean {
  if (!isText(value)) return false;
  const slash = value.indexOf("/");
  const prefix = value.slice(slash + 1);
  const bytes = parseAddress(value.slice(0, Math.max(0, slash)));
  return bytes !== undefined && /^\d{1,64}$/.test(prefix) && Number(prefix) <= 8 * bytes.length;
}

/** Required: Go would write an absent one as `<nil>`, which cannot be decoded again. */
const cidr: Type = (value, at) => {
  const wanted = "an address in CIDR form, for example 10.1.1.2/24";
  if (value === undefined) throw new CniError(ErrorCode.config, `${at} is missing: it should be ${wanted}`);
  if (!isCidr(value)) refuse(at, value, wanted);
};

const list =
  (item: Type): Type =>
  (value, at) => {
    if (value === null || value === undefined) return;
    if (!Array.isArray(value)) return refuse(at, value, "a list");
    for (const [index, each] of value.entries()) item(each, `${at}[${index}]`);
  };

/** Names are compared as Go does, regardless of case. */
const object = (members: Readonly<Record<string, Type>>): Type => {
  const types = Object.entries(members);
  return (value, at) => {
    if (value === null || value === undefined) return;
    if (!isObject(value)) return refuse(at, value, "an object");
    // The usual case, since there may be thousands of routes.
    if (Object.keys(value).every((key) => Object.hasOwn(members, key))) {
      for (const [name, type] of types) type(value[name], `${at}.${name}`);
      return;
    }
    const given = Object.entries(value);
    for (const [name, type] of types) {
      const found = given.filter(([key]) => key.toLowerCase() === name.toLowerCase());
      for (const [key, member] of found) type(member, `${at}.${key}`);
      if (found.length === 0) type(undefined, `${at}.${name}`);
    }
  };
};

const dns = object({ nameservers: list(text), domain: text, search: list(text), options: list(text) });
const routes = list(
  object({ dst: cidr, gw: address, mtu: integer, advmss: integer, priority: integer, table: integer, scope: integer }),
);
const oldAddress = object({ ip: cidr, gateway: address, routes });
const ip = { address: cidr, gateway: address, interface: integer };
const link = { name: text, mac: text, sandbox: text };

/** By the first version with the type. */
const TYPES: readonly (readonly [since: CniVersion, type: Type])[] = [
  [
    "1.0.0",
    object({
      interfaces: list(object({ ...link, mtu: integer, socketPath: text, pciID: text })),
      ips: list(object(ip)),
      routes,
      dns,
    }),
  ],
  ["0.3.0", object({ interfaces: list(object(link)), ips: list(object({ ...ip, version: text })), routes, dns })],
  ["0.1.0", object({ ip4: oldAddress, ip6: oldAddress, dns })],
];

/** @throws CniError 7 that names the first member that libcni would not decode */
export function requireResult(result: JsonObject, version: CniVersion): void {
  TYPES.find(([since]) => atLeast(version, since))?.[1](result, "prevResult");
}
