import { element, Tag } from "../der";
import { problemOf } from "./certificates";

const sequence = (...parts: readonly Uint8Array[]) => element(Tag.sequence, ...parts);
const domain = (name: string) => element(0x82, Buffer.from(name));

/** The used parts of a certificate, with one extension of 2.5.29. */
function certificate(extension: number, value: Uint8Array): Uint8Array {
  const before = Array.from({ length: 6 }, () => sequence());
  const id = element(0x06, Buffer.from([0x55, 0x1d, extension]));
  const extensions = element(0xa3, sequence(sequence(id, element(0x04, value))));
  const algorithm = sequence(element(Tag.oid));
  return sequence(sequence(element(0xa0), ...before, extensions), algorithm, element(Tag.bits));
}

const server = certificate(17, sequence(domain("api.example.com")));
const within = (...lists: readonly Uint8Array[]) => problemOf([server, certificate(30, sequence(...lists))]);
const permitted = (name: string) => element(0xa0, sequence(domain(name)));
const excluded = (name: string) => element(0xa1, sequence(domain(name)));

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
    ["of no kind", [element(0xa2, sequence(domain("example.com")))]],
    ["of nothing", []],
    ["that are no subtrees", [element(0xa0, domain("example.com"))]],
  ])("%s are malformed", (_, lists) => {
    expect(within(...lists)).toBe("a certificate's list of name constraints is malformed");
  });
});
