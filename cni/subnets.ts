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

const [DOT, ZERO, COLON] = [0x2e, 0x30, 0x3a] as const;
const SIZE = { ip: 4, ip6: 16 } as const;
const GROUPS = 8;

/** The value of a digit by its code; NaN for anything else. */
function digit(code: number): number {
  const value = code - ZERO;
  return value >= 0 && value <= 9 ? value : Number.NaN;
}

function hexDigit(code: number): number {
  const letter = (code | 0x20) - 0x61;
  return letter >= 0 && letter <= 5 ? letter + 10 : digit(code);
}

/** A number below 1000 in a part of a text, without leading zeros; NaN for anything else. */
function numberAt(text: string, from: number, to: number): number {
  if (to - from < 1 || to - from > 3) return Number.NaN;
  let value = 0;
  for (let at = from; at < to; at += 1) value = value * 10 + digit(text.charCodeAt(at));
  return to - from > 1 && text.charCodeAt(from) === ZERO ? Number.NaN : value;
}

function parseIPv4(text: string): number[] | undefined {
  const bytes: number[] = [];
  for (let at = 0, from = 0, byte = 0; at <= text.length; at += 1) {
    const value = text.charCodeAt(at) - ZERO;
    if (value >= 0 && value <= 9) {
      // No leading zeros.
      if (byte === 0 && at > from) return undefined;
      byte = byte * 10 + value;
      if (byte > 255) return undefined;
    } else {
      if (at === from || (at < text.length && value !== DOT - ZERO) || bytes.push(byte) > SIZE.ip) return undefined;
      from = at + 1;
      byte = 0;
    }
  }
  return bytes.length === SIZE.ip ? bytes : undefined;
}

/** The last group of an address may be an IPv4 address. */
function parseIPv6(text: string): number[] | undefined {
  const bytes: number[] = [];
  /** Number of bytes before `::`. */
  let gap: number | undefined;
  let at = 0;
  if (text.startsWith("::")) [gap, at] = [0, 2];
  while (at < text.length && bytes.length < SIZE.ip6) {
    let end = at;
    let value = 0;
    for (; end - at <= 4; end += 1) {
      const next = hexDigit(text.charCodeAt(end));
      if (Number.isNaN(next)) break;
      value = value * 16 + next;
    }
    if (text.charCodeAt(end) === DOT) {
      bytes.push(...(parseIPv4(text.slice(at)) ?? [Number.NaN]));
      at = text.length;
      break;
    }
    if (end === at || end - at > 4) return undefined;
    bytes.push(value >> 8, value & 0xff);
    at = end;
    if (at === text.length) break;
    // One colon and a group, or two.
    if (text.charCodeAt(at) !== COLON || at + 1 === text.length) return undefined;
    at += 1;
    if (text.charCodeAt(at) !== COLON) continue;
    if (gap !== undefined) return undefined;
    gap = bytes.length;
    at += 1;
  }
  const missing = SIZE.ip6 - bytes.length;
  if (at < text.length || Number.isNaN(bytes.at(-1))) return undefined;
  if (gap === undefined) return missing === 0 ? bytes : undefined;
  if (missing < 2) return undefined;
  return [...bytes.slice(0, gap), ...new Array<number>(missing).fill(0), ...bytes.slice(gap)];
}

/** The bytes of an IPv4 or IPv6 address, as Go's `net.ParseIP` reads it; undefined for other texts. */
export const parseAddress = (text: string): number[] | undefined =>
  text.includes(":") ? parseIPv6(text) : parseIPv4(text);

/** A byte of a netmask. */
const maskAt = (prefix: number, index: number) => (0xff00 >> Math.min(8, Math.max(0, prefix - 8 * index))) & 0xff;

/** The bits of a netmask, `size` bytes. */
export function netmask(prefix: number, size: number): Uint8Array {
  const mask = new Uint8Array(size);
  for (let index = 0; index < size; index += 1) mask[index] = maskAt(prefix, index);
  return mask;
}

/** A network like `10.0.0.0/8` or `fd00::/8`; undefined for other texts. Surrounding white space is allowed. */
export function parseSubnet(given: string): Subnet | undefined {
  const text = given.trim();
  const slash = text.indexOf("/");
  const bytes = slash < 0 ? undefined : parseAddress(text.slice(0, slash));
  const prefix = numberAt(text, slash + 1, text.length);
  if (bytes === undefined || !(prefix <= 8 * bytes.length)) return undefined;
  for (let index = prefix >> 3; index < bytes.length; index += 1)
    bytes[index] = (bytes[index] ?? 0) & maskAt(prefix, index);
  return { family: bytes.length === SIZE.ip ? "ip" : "ip6", address: new Uint8Array(bytes), prefix, text };
}

const MAPPED_PREFIX = 96;
const isMapped = ({ family, address, prefix }: Subnet) =>
  family === "ip6" &&
  prefix >= MAPPED_PREFIX &&
  address[10] === 0xff &&
  address[11] === 0xff &&
  address.subarray(0, 10).every((byte) => byte === 0);

/** The IPv4 network of an IPv4-mapped one (RFC 4291, section 2.5.5.2); undefined for others. */
export function unmapped(subnet: Subnet): Subnet | undefined {
  if (!isMapped(subnet)) return undefined;
  const { address, prefix, text } = subnet;
  return { family: "ip", address: address.subarray(MAPPED_PREFIX / 8), prefix: prefix - MAPPED_PREFIX, text };
}

/** A sort key by family, address and prefix: a network comes right before those within it. */
const sortKey = ({ family, address, prefix }: Subnet) => `${family} ${String.fromCharCode(...address, prefix)}`;

function holds(outer: Subnet, inner: Subnet): boolean {
  if (outer.family !== inner.family || outer.prefix > inner.prefix) return false;
  for (let index = 0; 8 * index < outer.prefix; index += 1) {
    const difference = (outer.address[index] ?? 0) ^ (inner.address[index] ?? 0);
    if ((difference & maskAt(outer.prefix, index)) !== 0) return false;
  }
  return true;
}

/** The same networks in ascending order, without duplicates and networks within others. */
export function mergeSubnets(subnets: readonly Subnet[]): readonly Subnet[] {
  const byKey = new Map(subnets.map((subnet) => [sortKey(subnet), subnet]));
  const merged: Subnet[] = [];
  // Text sorts without a call for each comparison.
  for (const key of [...byKey.keys()].sort()) {
    const subnet = byKey.get(key);
    const last = merged.at(-1);
    if (subnet !== undefined && (last === undefined || !holds(last, subnet))) merged.push(subnet);
  }
  return merged;
}

/**
 * The networks of a comma-separated list, in its order, and merged if there are more than {@link MAX_ITEMS}.
 * @param refuse is called with the first item that is not a network, or is IPv4-mapped: no packet has its addresses
 */
export function parseSubnets(text: string, refuse: (item: string) => never): readonly Subnet[] {
  const subnets: Subnet[] = [];
  eachItem(text, (start, end) => {
    const item = text.slice(start, end);
    const subnet = parseSubnet(item) ?? refuse(item);
    subnets.push(isMapped(subnet) ? refuse(item) : subnet);
  });
  return subnets.length > MAX_ITEMS ? mergeSubnets(subnets) : subnets;
}

/** `::` stands for the longest run of at least two zero groups. */
const ZERO_RUN = /(?:^|:)0(?::0)+(?:$|:)/g;

/** An address that contains an IPv4 address is shown with it, as the C library does. */
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

/** An address of 4 or 16 bytes as kernel tools print it: IPv6 is shortened. */
export const formatAddress = (address: Uint8Array): string =>
  address.length === SIZE.ip ? address.join(".") : formatIPv6(address);

/** The network as kernel tools print it: host bits cleared, IPv6 shortened. */
export const formatSubnet = ({ address, prefix }: Subnet): string => `${formatAddress(address)}/${prefix}`;
