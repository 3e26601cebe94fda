import { createPrivateKey, X509Certificate } from "node:crypto";
import * as fc from "fast-check";
import { type CertificateOptions, certificate, type KeyKind, pem } from "../../../system/certificates.testing";
import { generateKey } from "../../../system/crypto";
import { isFor, readCertificate, readPair, splitCertificates } from "./certificate";
import { issueCertificate } from "./issue";

const NAME = "linkerd-multus-webhook.ops.svc";

const make = (subject: string, options: Partial<CertificateOptions> = {}) => certificate({ subject, ...options });

const [root, other] = [make("root", { isAuthority: true }), make("other", { isAuthority: true })];

test.each([
  ["garbled", (pem: string) => pem.replace(/\n.{20}/, "\n!!!!")],
  ["cut off", (pem: string) => pem.slice(0, pem.length / 2)],
])("an intermediate certificate that is %s is refused", (_, spoil) => {
  const leaf = make("leaf", { by: root, names: [NAME] });
  const pair = { cert: `${leaf.cert}\n${spoil(root.cert)}\n`, key: leaf.key };
  expect(() => readPair(pair, "tls")).toThrow("tls.crt and tls.key: ");
});

const older = (key: string, type: "pkcs1" | "sec1") => createPrivateKey(key).export({ type, format: "pem" }).toString();
const rsa = make("rsa", { by: root, key: "rsa", names: [NAME] });
const p384 = make("p384", { by: root, key: "P-384", names: [NAME] });

test.each([
  ["RSA", rsa.cert, rsa.key],
  ["RSA PRIVATE KEY", rsa.cert, older(rsa.key, "pkcs1")],
  ["P-384", p384.cert, p384.key],
  ["EC PRIVATE KEY", p384.cert, older(p384.key, "sec1")],
  ["lines as of Windows", p384.cert.replaceAll("\n", "\r\n"), p384.key.replaceAll("\n", "\r\n")],
  ["without a line's end", p384.cert.trimEnd(), p384.key.trimEnd()],
])("foreign pairs are read: %s", (_, cert, key) => {
  expect(() => readPair({ cert, key }, "tls")).not.toThrow();
});

test("an expired certificate is read, and the server decides", () => {
  const [past, future] = [{ toDay: -0.5 }, { fromDay: 1 }].map((days) =>
    make("leaf", { by: root, names: [NAME], ...days }),
  );
  expect(readPair(past!, "tls").validTo).toBeLessThan(Date.now());
  expect(readPair(future!, "tls").validFrom).toBeGreaterThan(Date.now());
});

const encrypted = createPrivateKey(p384.key).export({
  ...{ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "secret" },
});
const legacy = createPrivateKey(rsa.key).export({
  ...{ type: "pkcs1", format: "pem", cipher: "aes-256-cbc", passphrase: "secret" },
});
const lines = p384.key.split("\n");

test.each<[string, string, string, RegExp]>([
  ["no certificate", "", p384.key, /^tls\.crt: no certificate in PEM form$/],
  [
    "a certificate that is not base64",
    p384.cert.replace(/\n.{20}/, "\n!!!!"),
    p384.key,
    /^tls\.crt: it is not base64$/,
  ],
  ["a certificate that is cut", p384.cert.replace(/\n.{64}\n/, "\n"), p384.key, /^tls\.crt: .* is malformed$/],
  ["both in the wrong files", p384.key, p384.cert, /^tls\.crt: no certificate in PEM form$/],
  ["no key", p384.cert, "", /^tls\.key: no private key in PEM form$/],
  ["a certificate as key", p384.cert, p384.cert, /^tls\.key: no private key in PEM form$/],
  ["a garbled key", p384.cert, [lines[0], "MIG", ...lines.slice(2)].join("\n"), /^tls\.key: ./],
  ["a key that is cut", p384.cert, [...lines.slice(0, 2), ...lines.slice(3)].join("\n"), /^tls\.key: ./],
  ["a key without its end", p384.cert, lines.slice(0, 3).join("\n"), /^tls\.key: ./],
  ["a huge key", p384.cert, [lines[0], "A".repeat(1_000_000), ...lines.slice(2)].join("\n"), /^tls\.key: .{1,100}$/],
  ["an encrypted key", p384.cert, encrypted.toString(), /^tls\.key: the private key is encrypted$/],
  ["an encrypted key of the older form", rsa.cert, legacy.toString(), /^tls\.key: the private key is encrypted$/],
  ["another key", p384.cert, rsa.key, /^tls\.key is not the key of tls\.crt$/],
  ["another key of the kind", p384.cert, generateKey(), /^tls\.key is not the key of tls\.crt$/],
])("%s: the error says so, and does not quote the key", (_, cert, key, message) => {
  let found = "";
  try {
    readPair({ cert, key }, "tls");
  } catch (error) {
    found = (error as Error).message;
  }
  expect(found).toMatch(message);
  for (const line of key.split("\n").filter((each) => each.length > 20 && !each.startsWith("-----"))) {
    expect(found).not.toContain(line.slice(0, 20));
  }
});

test("a text with many certificates is split, and a huge one without their ends is refused fast", () => {
  expect(splitCertificates(`# first\n${root.cert}${other.cert}garbage`)).toEqual([root.cert, other.cert]);
  expect(splitCertificates("-----BEGIN CERTIFICATE-----\n".repeat(100_000))).toEqual([]);
});

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
        dnsNames: options.names,
        publicKey: spki(expected),
      });
    }),
    { numRuns: 30 },
  );
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

const { cert } = issueCertificate([NAME], new Date(), 1e9);

test("a text may hold other things before and after the certificate, and any line ends", () => {
  const { publicKey } = readCertificate(cert);
  const [other] = [certificate({ subject: "other" })];
  expect(readCertificate(`Subject: CN = x\n${cert}${other.cert}`).publicKey).toEqual(publicKey);
  expect(readCertificate(`${other.key}${cert.replaceAll("\n", "\r\n")}`).publicKey).toEqual(publicKey);
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
