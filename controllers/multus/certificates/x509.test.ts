import { X509Certificate } from "node:crypto";
import * as fc from "fast-check";
import { authority, certificate, type KeyKind, pem } from "../../../system/certificates.testing";
import { createAuthority } from "./issue";
import { isFor, isIssuedBy, readCertificate } from "./x509";

const spki = (read: X509Certificate) => new Uint8Array(read.publicKey.export({ type: "spki", format: "der" }));
const derOf = (text: string) => Buffer.from(text.replace(/-----[^-]+-----|\s/g, ""), "base64");

const name = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?){0,3}$/);
const shape = fc.record({
  subject: fc.string({ minLength: 1, maxLength: 20 }),
  // RSA keys take too long to make.
  key: fc.constantFrom<KeyKind>("P-256", "P-384"),
  hash: fc.constantFrom("sha256", "sha384"),
  names: fc.uniqueArray(name, { maxLength: 4 }),
  isAuthority: fc.boolean(),
  fromDay: fc.integer({ min: -9_000, max: 9_000 }),
  toDay: fc.integer({ min: -9_000, max: 30_000 }),
});

test("a certificate is read as Node reads it", () => {
  fc.assert(
    fc.property(shape, (options) => {
      const { cert } = certificate({ ...options, names: [], dnsNames: options.names });
      const [read, expected] = [readCertificate(cert), new X509Certificate(cert)];
      expect(read).toMatchObject({
        validFrom: Date.parse(expected.validFrom),
        validTo: Date.parse(expected.validTo),
        isAuthority: expected.ca,
        dnsNames: options.names,
        publicKey: spki(expected),
      });
      expect(Buffer.compare(read.der, expected.raw)).toBe(0);
      expect(isIssuedBy(read, { ...read, isAuthority: true })).toBe(true);
    }),
    { numRuns: 30 },
  );
});

test.each(["sha256", "sha384"] as const)("a signature of %s by an RSA key is verified", (hash) => {
  const root = authority("root", { key: "rsa" });
  const [leaf, other] = [{ by: root }, {}].map((by) =>
    readCertificate(certificate({ subject: "leaf", hash, ...by }).cert),
  );
  expect(isIssuedBy(leaf!, readCertificate(root.cert))).toBe(true);
  expect(isIssuedBy(other!, readCertificate(root.cert))).toBe(false);
});

test("an authority with the same name, a changed certificate, and unknown algorithms are not verified", () => {
  const [root, same] = [authority("root"), authority("root")];
  const [rootCa, sameCa] = [root, same].map(({ cert }) => readCertificate(cert));
  const leaf = readCertificate(certificate({ subject: "leaf", by: root }).cert);
  expect(isIssuedBy(leaf, rootCa!)).toBe(true);
  expect(isIssuedBy(leaf, sameCa!)).toBe(false);
  const changed = leaf.signed.map((byte, at) => (at === leaf.signed.length - 1 ? byte ^ 1 : byte));
  expect(isIssuedBy({ ...leaf, signed: changed }, rootCa!)).toBe(false);
  expect(isIssuedBy({ ...leaf, algorithm: "2b6570" }, rootCa!)).toBe(false);
  const old = readCertificate(certificate({ subject: "old", by: root, hash: "sha1" }).cert);
  expect(isIssuedBy(old, rootCa!)).toBe(false);
});

test.each<[string, readonly string[], boolean]>([
  ["a.ops.svc", ["a.ops.svc"], true],
  ["a.ops.svc", ["A.Ops.SVC"], true],
  ["a.ops.svc", ["b.ops.svc", "a.ops.svc"], true],
  ["a.ops.svc", ["*.ops.svc"], true],
  ["a.ops.svc", ["*.svc"], false],
  ["a.ops.svc", ["a.*.svc"], false],
  ["a.ops.svc", ["a*.ops.svc"], false],
  ["a.ops.svc", ["*"], false],
  ["a.ops.svc", ["a.ops.svc.cluster.local"], false],
  ["a.ops.svc", ["ops.svc"], false],
  ["a.ops.svc", ["a.ops.svc\0.evil"], false],
  ["a.ops.svc", [""], false],
  ["a.ops.svc", [], false],
])("the API server calls %s: a certificate for %j is accepted: %s", (wanted, dnsNames, isAccepted) => {
  const { cert } = certificate({ subject: "a.ops.svc", dnsNames });
  expect(isFor(readCertificate(cert), wanted)).toBe(isAccepted);
});

test("times of 1950 to 2049, and of later years, are read", () => {
  const day = (iso: string) => (Date.parse(iso) - Date.now()) / 86_400_000;
  const { cert } = certificate({
    subject: "old",
    fromDay: day("1951-02-03T04:05:06Z"),
    toDay: day("9999-12-31T23:59:59Z"),
  });
  const { validFrom, validTo } = readCertificate(cert);
  expect(Math.abs(validFrom - Date.parse("1951-02-03T04:05:06Z"))).toBeLessThanOrEqual(2_000);
  expect(Math.abs(validTo - Date.parse("9999-12-31T23:59:59Z"))).toBeLessThanOrEqual(2_000);
});

const { cert } = createAuthority(new Date(), 1e9);

test("a text may hold other things before and after the certificate, and any line ends", () => {
  const { der } = readCertificate(cert);
  const [other] = [certificate({ subject: "other" })];
  expect(readCertificate(`Subject: CN = x\n${cert}${other.cert}`).der).toEqual(der);
  expect(readCertificate(`${other.key}${cert.replaceAll("\n", "\r\n")}`).der).toEqual(der);
});

test.each([
  ["nothing", "", /^no certificate in PEM form$/],
  ["a key", certificate({ subject: "other" }).key, /^no certificate in PEM form$/],
  ["one that is cut off", cert.slice(0, cert.length / 2), /^no certificate in PEM form$/],
  ["no base64", cert.replace(/\n.{20}/, "\n!!!!"), /^it is not base64$/],
  ["an empty one", pem("CERTIFICATE", Buffer.of()), /^a certificate is malformed$/],
  ["another structure", pem("CERTIFICATE", Buffer.of(0x04, 1, 0)), /^a certificate is malformed$/],
  ["an empty structure", pem("CERTIFICATE", Buffer.of(0x30, 0)), /^a certificate is malformed$/],
  ["one without its end", pem("CERTIFICATE", derOf(cert).subarray(0, 200)), /^a certificate is malformed$/],
  ["an endless length", pem("CERTIFICATE", Buffer.of(0x30, 0x84, 255, 255, 255, 255)), /^a certificate is malformed$/],
  ["a huge one", pem("CERTIFICATE", Buffer.alloc(200_000, 0x30)), /^the certificate is too long: \d+ characters$/],
  ["a day that does not exist", pem("CERTIFICATE", withTime("260230000000Z")), /^the certificate is malformed$/],
  ["a time without seconds", pem("CERTIFICATE", withTime("2602010000+00")), /^the certificate is malformed$/],
])("%s is not a certificate", (_, text, message) => {
  expect(() => readCertificate(text)).toThrow(message);
});

/** A certificate whose validity begins at another time, of as many characters. */
function withTime(time: string): Buffer {
  const der = derOf(cert);
  const at = der.indexOf(Buffer.of(0x17, 13));
  der.write(time, at + 2, "latin1");
  return der;
}

test("for any text, an error is an Error with a short message", () => {
  const whole = derOf(cert);
  const spoilt = fc
    .array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
    .map((changes) => {
      const bytes = Buffer.from(whole);
      for (const [at, byte] of changes) bytes[at] = byte;
      return pem("CERTIFICATE", bytes);
    });
  fc.assert(
    fc.property(fc.oneof(spoilt, fc.string({ unit: "binary" })), (text) => {
      try {
        readCertificate(text);
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
        expect((error as Error).message).toMatch(/malformed$|^it is not base64$|^no certificate/);
      }
    }),
    { numRuns: 500 },
  );
});
