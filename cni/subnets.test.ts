import { isIPv6 } from "node:net";
import fc from "fast-check";
import { formatSubnet, mergeSubnets, netmask, parseSubnet, type Subnet } from "./subnets";

describe("a subnet", () => {
  it.each([
    ["10.5.6.7/15", "10.4.0.0/15"],
    [" 0.0.0.0/0 ", "0.0.0.0/0"],
    ["192.168.1.1/32", "192.168.1.1/32"],
    ["fd00:1:2:3::9/16", "fd00::/16"],
    ["::/0", "::/0"],
    ["2001:DB8:0:0:1:0:0:1/128", "2001:db8::1:0:0:1/128"],
    ["1:2:3:4:5:6:7:0/128", "1:2:3:4:5:6:7:0/128"],
    ["::ffff:10.1.2.3/128", "::ffff:10.1.2.3/128"],
    ["::ffff:0:0/96", "::ffff:0.0.0.0/96"],
    ["::1.2.3.4/128", "::1.2.3.4/128"],
    ["::1:2/112", "::0.1.0.0/112"],
    ["::1/128", "::1/128"],
    ["1::/16", "1::/16"],
  ])("%s is %s", (given, wanted) => {
    expect(formatSubnet(parseSubnet(given)!)).toBe(wanted);
    expect(parseSubnet(given)!.text).toBe(given.trim());
  });

  it.each([
    "",
    "10.0.0.0",
    "10.0.0/8",
    "10.0.0.256/8",
    "10.0.0.0/33",
    "10.0.0.0/08",
    "01.0.0.0/8",
    "::/129",
    "1:2/16",
    ":::/8",
    "1::2::3/8",
    "12345::/8",
    "1:2:3:4:5:6:7:8:9/8",
    "1:2:3:4:5:6:7:8::/8",
    "a/b",
    "10.0.0.0/8/8",
  ])("%s is not a network", (given) => expect(parseSubnet(given)).toBeUndefined());

  it("IPv6 can be formatted and read again", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 16, maxLength: 16 }),
        fc.integer({ min: 0, max: 128 }),
        (bytes, prefix) => {
          const mask = netmask(prefix, 16);
          const address = bytes.map((byte, index) => byte & mask[index]!);
          const text = formatSubnet({ family: "ip6", address, prefix, text: "" });
          expect(isIPv6(text.split("/")[0]!)).toBe(true);
          expect(parseSubnet(text)).toEqual({ family: "ip6", address, prefix, text });
        },
      ),
    );
  });
});

describe("merged subnets", () => {
  const family = fc.constantFrom(["ip", 4] as const, ["ip6", 16] as const);
  const subnet = fc
    .tuple(family, fc.nat(3), fc.nat(7), fc.nat(128))
    .map(([[name, size], first, second, length]): Subnet => {
      const prefix = Math.min(length, 8 * size);
      const mask = netmask(prefix, size);
      const bytes = [first, second << 5, ...new Array<number>(size - 2).fill(0)];
      return { family: name, address: Uint8Array.from(bytes, (byte, index) => byte & mask[index]!), prefix, text: "" };
    });
  const holds = (outer: Subnet, inner: Subnet) =>
    outer.family === inner.family &&
    outer.prefix <= inner.prefix &&
    netmask(outer.prefix, outer.address.length).every(
      (mask, index) => (inner.address[index]! & mask) === outer.address[index],
    );

  it("contain all given networks, and none contains another", () => {
    fc.assert(
      fc.property(fc.array(subnet, { maxLength: 30 }), (given) => {
        const merged = mergeSubnets(given);
        for (const each of given) expect(merged.filter((outer) => holds(outer, each))).toHaveLength(1);
        for (const each of merged) {
          expect(given.map(formatSubnet)).toContain(formatSubnet(each));
          expect(merged.filter((outer) => holds(outer, each))).toEqual([each]);
        }
      }),
    );
  });
});
