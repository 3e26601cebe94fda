import { createPrivateKey } from "node:crypto";
import { type CertificateOptions, certificate, type Issued } from "../../../system/certificates.testing";
import { generateKey } from "../../../system/crypto";
import { readAuthority, readPair, readServingCertificate, splitCertificates } from "./certificate";

const NAME = "linkerd-multus-webhook.ops.svc";
const DAY_MS = 86_400_000;

const make = (subject: string, options: Partial<CertificateOptions> = {}) => certificate({ subject, ...options });

const read = (leaf: Issued, between: readonly Issued[], authorities: readonly Issued[]) => {
  const cert = [leaf, ...between].map((each) => each.cert).join("");
  const trusted = authorities.map((each) => each.cert);
  return readServingCertificate({ cert, key: leaf.key }, "tls", { name: NAME, authorities: trusted });
};

const [root, other] = [make("root", { isAuthority: true }), make("other", { isAuthority: true })];

test("the name that the API server calls is enough", () => {
  const leaf = make("leaf", { by: root, names: [NAME] });
  expect(read(leaf, [], [other, root]).ca).toBe(root.cert);
  const wild = make("wild", { by: root, names: ["*.ops.svc"] });
  expect(read(wild, [], [root]).ca).toBe(root.cert);
});

test("a common name does not count, as in the API server", () => {
  const leaf = make(NAME, { by: root });
  expect(() => read(leaf, [], [root])).toThrow(`tls.crt is not valid for ${NAME}`);
});

test("a chain leads to the authority, in any order, and lasts as long as its shortest link", () => {
  const outer = make("outer", { by: root, isAuthority: true, fromDay: -0.5, toDay: 20 });
  const inner = make("inner", { by: outer, isAuthority: true });
  const leaf = make("leaf", { by: inner, names: [NAME] });
  expect(read(leaf, [inner, outer], [root])).toMatchObject({ ca: root.cert });
  const { validFrom, validTo } = read(leaf, [inner, outer], [root]);
  expect(Math.abs(validTo - (Date.now() + 20 * DAY_MS))).toBeLessThan(DAY_MS / 2);
  expect(Math.abs(validFrom - (Date.now() - DAY_MS / 2))).toBeLessThan(DAY_MS / 4);
  expect(read(leaf, [outer, other, inner], [root]).ca).toBe(root.cert);
  // An authority need not be self-signed.
  expect(read(leaf, [], [inner]).ca).toBe(inner.cert);
  expect(() => read(leaf, [inner], [root])).toThrow("tls.crt does not lead to a certificate in ca.crt");
  expect(() => read(leaf, [inner, outer], [other])).toThrow("tls.crt does not lead to a certificate in ca.crt");
});

test.each([
  ["garbled", (pem: string) => pem.replace(/\n.{20}/, "\n!!!!")],
  ["cut off", (pem: string) => pem.slice(0, pem.length / 2)],
])("an intermediate certificate that is %s is refused", (_, spoil) => {
  const leaf = make("leaf", { by: root, names: [NAME] });
  const pair = { cert: `${leaf.cert}\n${spoil(root.cert)}\n`, key: leaf.key };
  expect(() => readPair(pair, "tls")).toThrow("tls.crt and tls.key: ");
});

test("only authorities sign", () => {
  const fake = make("fake", { by: root });
  const leaf = make("leaf", { by: fake, names: [NAME] });
  expect(() => read(leaf, [fake], [root])).toThrow("does not lead to");
});

test("a self-signed certificate is trusted if it is its own authority", () => {
  const leaf = make("self", { names: [NAME] });
  expect(read(leaf, [], [leaf]).ca).toBe(leaf.cert);
  expect(() => read(leaf, [], [root])).toThrow("does not lead to");
});

test("the authority of a key is found among the trusted ones", () => {
  const found = readAuthority(other.key, ["no certificate", root.cert, other.cert]);
  expect(found).toMatchObject({ cert: other.cert, key: other.key });
  expect(new Date(found?.validTo ?? 0).getTime()).toBeGreaterThan(Date.now() + 29 * DAY_MS);
  expect(readAuthority(other.key, [root.cert])).toBeUndefined();
  expect(readAuthority("", [root.cert])).toBeUndefined();
  expect(readAuthority("no key", [root.cert])).toBeUndefined();
});

test("the key of a certificate that is not an authority cannot sign", () => {
  const self = make("self", { names: [NAME] });
  expect(readAuthority(self.key, [self.cert])).toBeUndefined();
});

test("certificates that signed each other lead nowhere", () => {
  // All of one name: each seems to be issued by every other.
  const same = Array.from({ length: 12 }, () => make("same", { isAuthority: true }));
  const leaf = make("leaf", { by: same[0]!, names: [NAME] });
  expect(() => read(leaf, same, [root])).toThrow("does not lead to");
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
  expect(readServingCertificate({ cert, key }, "tls", { name: NAME, authorities: [root.cert] }).ca).toBe(root.cert);
});

test("an expired certificate is read, and the server decides", () => {
  const [past, future] = [{ toDay: -0.5 }, { fromDay: 1 }].map((days) =>
    make("leaf", { by: root, names: [NAME], ...days }),
  );
  expect(read(past!, [], [root]).validTo).toBeLessThan(Date.now());
  expect(readPair(past!, "tls").validTo).toBeLessThan(Date.now());
  expect(read(future!, [], [root]).validFrom).toBeGreaterThan(Date.now());
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
