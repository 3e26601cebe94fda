import { problemOf } from "./certificates";

const der = (tag: number, ...parts: readonly Uint8Array[]) => {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(body.length < 0x80 ? [tag, body.length] : [tag, 0x81, body.length]), body]);
};
const sequence = (...parts: readonly Uint8Array[]) => der(0x30, ...parts);
const domain = (name: string) => der(0x82, Buffer.from(name));

/** As much of a certificate as is looked at, with one extension of 2.5.29. */
function certificate(extension: number, value: Uint8Array): Uint8Array {
  const before = Array.from({ length: 6 }, () => sequence());
  const id = der(0x06, Buffer.from([0x55, 0x1d, extension]));
  const extensions = der(0xa3, sequence(sequence(id, der(0x04, value))));
  return sequence(sequence(der(0xa0), ...before, extensions));
}

const server = certificate(17, sequence(domain("api.example.com")));
const within = (...lists: readonly Uint8Array[]) => problemOf([server, certificate(30, sequence(...lists))]);
const permitted = (name: string) => der(0xa0, sequence(domain(name)));
const excluded = (name: string) => der(0xa1, sequence(domain(name)));

describe("name constraints", () => {
  it("that permit a name hold", () => {
    expect(within(permitted("example.com"))).toBe("");
    expect(within(permitted("example.com"), excluded("other.example.com"))).toBe("");
    expect(within(permitted("example.org"))).toContain("no name constraint permits it");
    expect(within(excluded("example.com"))).toContain("a name constraint excludes it");
  });

  it.each<[string, readonly Uint8Array[]]>([
    ["of one kind in two lists", [excluded("example.org"), excluded("example.com")]],
    ["in the wrong order", [excluded("example.org"), permitted("example.com")]],
    ["of no kind", [der(0xa2, sequence(domain("example.com")))]],
    ["of nothing", []],
    ["that are no subtrees", [der(0xa0, domain("example.com"))]],
  ])("%s are malformed", (_, lists) => {
    expect(within(...lists)).toBe("a certificate's list of name constraints is malformed");
  });
});
