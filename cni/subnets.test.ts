import { isIPv6 } from "node:net";
import fc from "fast-check";
import { formatSubnet, netmask, parseSubnet } from "./subnets";

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
  ])("%s is none", (given) => expect(parseSubnet(given)).toBeUndefined());

  it("IPv6 survives its own text", () => {
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
