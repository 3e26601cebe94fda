import { eachItem, MAX_ITEMS } from "./lists";

export const FAMILIES = ["ip", "ip6"] as const;
/** Address family, by its name in nftables. */
export type Family = (typeof FAMILIES)[number];

/** A network in CIDR notation. */
export interface Subnet {
  readonly family: Family;
  /** The network's address: host bits are zero. */
  readonly address: Uint8Array;
  readonly prefix: number;
  /** As it was written. */
  readonly text: string;
}

const BYTE = /^(0|[1-9]\d{0,2})$/;
const GROUP = /^[0-9a-f]{1,4}$/i;
const GROUPS = 8;

function parseIPv4(text: string): readonly number[] | undefined {
  const parts = text.split(".");
  const valid = parts.length === 4 && parts.every((part) => BYTE.test(part) && Number(part) <= 255);
  return valid ? parts.map(Number) : undefined;
}

/** Colon-separated groups to bytes; at the end of an address the last group may be an IPv4 address. */
function parseGroups(text: string, isEnd: boolean): readonly number[] | undefined {
  if (text === "") return [];
  const bytes: number[] = [];
  const groups = text.split(":");
  for (const [index, group] of groups.entries()) {
    const embedded = isEnd && index === groups.length - 1 ? parseIPv4(group) : undefined;
    if (embedded !== undefined) bytes.push(...embedded);
    else if (GROUP.test(group)) bytes.push(Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff);
    else return undefined;
  }
  return bytes;
}

function parseIPv6(text: string): readonly number[] | undefined {
  const halves = text.split("::");
  const [head, tail] = halves.map((half, index) => parseGroups(half, index === halves.length - 1));
  if (head === undefined || halves.length > 2) return undefined;
  if (halves.length === 1) return head.length === 2 * GROUPS ? head : undefined;
  if (tail === undefined) return undefined;
  const gap = 2 * GROUPS - head.length - tail.length;
  return gap >= 2 ? [...head, ...new Array<number>(gap).fill(0), ...tail] : undefined;
}

/** The bytes of an IPv4 or IPv6 address, as Go's `net.ParseIP` reads it; undefined for anything else. */
export function parseAddress(text: string): readonly number[] | undefined {
  return text.includes(":") ? parseIPv6(text) : parseIPv4(text);
}

/** The bits of a netmask, `size` bytes. */
export function netmask(prefix: number, size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, index) => {
    const bits = Math.min(8, Math.max(0, prefix - 8 * index));
    return (0xff << (8 - bits)) & 0xff;
  });
}

/** A network like `10.0.0.0/8` or `fd00::/8`; undefined for anything else. White space around is allowed. */
export function parseSubnet(given: string): Subnet | undefined {
  const text = given.trim();
  const match = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text);
  if (match === null) return undefined;
  const [, address = "", length = ""] = match;
  const bytes = parseAddress(address);
  const prefix = Number(length);
  if (bytes === undefined || prefix > 8 * bytes.length) return undefined;
  const mask = netmask(prefix, bytes.length);
  const family: Family = bytes.length === 4 ? "ip" : "ip6";
  return { family, address: Uint8Array.from(bytes, (byte, index) => byte & (mask[index] ?? 0)), prefix, text };
}

/** A text that sorts networks by family, address and prefix: a network comes right before those within it. */
const sortKey = ({ family, address, prefix }: Subnet) => `${family} ${String.fromCharCode(...address, prefix)}`;

function holds(outer: Subnet, inner: Subnet): boolean {
  if (outer.family !== inner.family || outer.prefix > inner.prefix) return false;
  const mask = netmask(outer.prefix, outer.address.length);
  return outer.address.every((byte, index) => byte === ((inner.address[index] ?? 0) & (mask[index] ?? 0)));
}

/** The same networks in ascending order, each once and none that lies within another. */
export function mergeSubnets(subnets: readonly Subnet[]): readonly Subnet[] {
  const byKey = new Map(subnets.map((subnet) => [sortKey(subnet), subnet]));
  const merged: Subnet[] = [];
  // Sorted as texts, without a call for each comparison.
  for (const key of [...byKey.keys()].sort()) {
    const subnet = byKey.get(key);
    const last = merged.at(-1);
    if (subnet !== undefined && (last === undefined || !holds(last, subnet))) merged.push(subnet);
  }
  return merged;
}

/**
 * The networks of a comma-separated list, in its order, and merged where there are more than {@link MAX_ITEMS}.
 * @param refuse is called with the first item that is no network
 */
export function parseSubnets(text: string, refuse: (item: string) => never): readonly Subnet[] {
  const subnets: Subnet[] = [];
  eachItem(text, (start, end) => {
    const item = text.slice(start, end);
    subnets.push(parseSubnet(item) ?? refuse(item));
  });
  return subnets.length > MAX_ITEMS ? mergeSubnets(subnets) : subnets;
}

/** The longest run of at least two zero groups is what `::` stands for. */
const ZERO_RUN = /(?:^|:)0(?::0)+(?:$|:)/g;

/** An address that holds an IPv4 one is shown with it, as the C library does. */
function formatIPv6(address: Uint8Array): string {
  const groups = Array.from({ length: GROUPS }, (_, index) =>
    (((address[2 * index] ?? 0) << 8) | (address[2 * index + 1] ?? 0)).toString(16),
  );
  const zeros = groups.findIndex((group) => group !== "0");
  const isMapped = zeros === 5 && groups[5] === "ffff";
  if (zeros === 6 || isMapped) return `::${isMapped ? "ffff:" : ""}${address.subarray(12).join(".")}`;
  const text = groups.join(":");
  const longest = [...text.matchAll(ZERO_RUN)].reduce((best, [run]) => (run.length > best.length ? run : best), "");
  return longest === "" ? text : text.replace(longest, "::");
}

/** The network as the kernel's tools print it: host bits cleared, IPv6 shortened. */
export function formatSubnet({ family, address, prefix }: Subnet): string {
  return `${family === "ip" ? address.join(".") : formatIPv6(address)}/${prefix}`;
}
