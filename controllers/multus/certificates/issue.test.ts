import { spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import type { AddressInfo } from "node:net";
import { connect, createServer } from "node:tls";
import * as fc from "fast-check";
import { authority as testAuthority } from "../../../system/certificates.testing";
import { type Authority, readAuthority, readPair, readServingCertificate, type TlsPair } from "./certificate";
import { createAuthority, issueCertificate } from "./issue";

const HOUR_MS = 3_600_000;
const names = ["webhook.ops.svc", "webhook.ops.svc.cluster.local"];

/** Connects as a client that trusts one authority. @returns why it does not trust the server */
async function connectTo(pair: TlsPair, ca: string, servername: string): Promise<string | undefined> {
  const server = createServer(pair, (socket) => socket.end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as AddressInfo;
    return await new Promise((resolve) => {
      const socket = connect({ port, host: "127.0.0.1", ca, servername });
      socket.on("secureConnect", () => resolve(undefined));
      socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    });
  } finally {
    server.close();
  }
}

test("an authority has what clients expect", () => {
  const now = new Date("2026-05-06T07:08:09.123Z");
  const { cert, key, validFrom, validTo } = createAuthority(now, 48 * HOUR_MS);
  const read = new X509Certificate(cert);
  expect(read.subject).toMatch(/^CN=linkerd-multus [0-9a-f]{16}$/);
  expect(read.issuer).toBe(read.subject);
  expect(read.ca).toBe(true);
  expect(read.verify(read.publicKey)).toBe(true);
  expect([read.validFrom, read.validTo].map((text) => new Date(text).toISOString())).toEqual([
    "2026-05-06T06:08:09.000Z",
    "2026-05-08T07:08:09.000Z",
  ]);
  expect(readAuthority(key, [cert])).toEqual({ cert, key, validFrom, validTo });
  expect(read.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: "prime256v1" });
});

test("each certificate has a unique serial number: positive, and of at most 20 bytes", () => {
  const by = createAuthority(new Date(), HOUR_MS);
  const made = Array.from(
    { length: 20 },
    () => new X509Certificate(issueCertificate(names, by, new Date(), HOUR_MS).cert),
  );
  expect(new Set(made.map(({ serialNumber }) => serialNumber)).size).toBe(20);
  for (const { serialNumber } of made) expect(serialNumber).toMatch(/^[4-7][0-9A-F]{31}$/);
});

test("openssl reads the intended content", () => {
  const by = createAuthority(new Date(), HOUR_MS);
  const print = (cert: string) =>
    spawnSync("openssl", ["x509", "-noout", "-text"], { input: cert, encoding: "utf8" }).stdout.replace(/\s+/g, " ");
  const [ca, leaf] = [by, issueCertificate(names, by, new Date(), HOUR_MS)].map(({ cert }) => print(cert)) as [
    string,
    string,
  ];
  for (const each of [ca, leaf]) {
    expect(each).toContain("Version: 3 (0x2)");
    expect(each).toContain("Signature Algorithm: ecdsa-with-SHA256");
  }
  expect(ca).toContain(
    "X509v3 Basic Constraints: critical CA:TRUE, pathlen:0 X509v3 Key Usage: critical Certificate Sign",
  );
  expect(leaf).toContain(
    "X509v3 Basic Constraints: critical CA:FALSE X509v3 Key Usage: critical Digital Signature " +
      "X509v3 Extended Key Usage: TLS Web Server Authentication " +
      `X509v3 Subject Alternative Name: DNS:${names.join(", DNS:")}`,
  );
});

const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/);
const dnsName = fc.array(label, { minLength: 1, maxLength: 3 }).map((labels) => labels.join("."));

test("for any names and validity, Node and the webhook read the requested values", () => {
  const date = fc.date({ min: new Date("1970-01-01"), max: new Date("2900-01-01"), noInvalidDate: true });
  const validity = fc.integer({ min: 60_000, max: 87_600 * HOUR_MS });
  fc.assert(
    fc.property(fc.uniqueArray(dnsName, { minLength: 1, maxLength: 8 }), date, validity, (wanted, now, validMs) => {
      const by = createAuthority(now, 2 * validMs);
      const pair = issueCertificate(wanted, by, now, validMs);
      const [ca, leaf] = [by.cert, pair.cert].map((cert) => new X509Certificate(cert)) as [
        X509Certificate,
        X509Certificate,
      ];
      expect(leaf.checkIssued(ca) && leaf.verify(ca.publicKey)).toBe(true);
      expect(leaf.subject).toBe(`CN=${wanted[0]?.slice(0, 64)}`);
      expect(leaf.subjectAltName).toBe(wanted.map((name) => `DNS:${name}`).join(", "));
      const end = Math.floor((now.getTime() + validMs) / 1000) * 1000;
      expect(Date.parse(leaf.validTo)).toBe(end);
      expect(Date.parse(leaf.validFrom)).toBeLessThanOrEqual(now.getTime());
      expect(now.getTime() - Date.parse(leaf.validFrom)).toBeLessThanOrEqual(HOUR_MS + 1000);
      for (const name of wanted) {
        const read = readServingCertificate(pair, "tls", { name, authorities: [by.cert] });
        expect(read).toMatchObject({ ca: by.cert, validFrom: Date.parse(leaf.validFrom), validTo: end });
      }
    }),
    { numRuns: 30 },
  );
});

test.each<[string, () => Pick<Authority, "cert" | "key">]>([
  ["of this operator", () => createAuthority(new Date(), 100 * HOUR_MS)],
  ["of RSA", () => testAuthority("own", { key: "rsa" })],
  ["of P-384", () => testAuthority("own", { key: "P-384" })],
])("clients that trust the authority trust the server, by its names alone: an authority %s", async (_, make) => {
  const [by, other] = [make(), createAuthority(new Date(), 100 * HOUR_MS)];
  const pair = issueCertificate(names, by, new Date(), HOUR_MS);
  expect(() => readPair(pair, "tls")).not.toThrow();
  for (const name of names) expect(await connectTo(pair, by.cert, name)).toBeUndefined();
  expect(await connectTo(pair, by.cert, "other.ops.svc")).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
  expect(await connectTo(pair, other.cert, names[0]!)).toBe("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
  const day = 24 * HOUR_MS;
  const [past, future] = [-day, day].map((ms) => issueCertificate(names, by, new Date(Date.now() + ms), HOUR_MS));
  expect(await connectTo(past!, by.cert, names[0]!)).toBe("CERT_HAS_EXPIRED");
  expect(await connectTo(future!, by.cert, names[0]!)).toBe("CERT_NOT_YET_VALID");
});

test("a key of another kind, or an invalid one, cannot sign", () => {
  const own = testAuthority("own", { key: "Ed25519" });
  expect(() => issueCertificate(names, own, new Date(), HOUR_MS)).toThrow("neither EC nor RSA");
  const by = { cert: createAuthority(new Date(), HOUR_MS).cert, key: "no key" };
  expect(() => issueCertificate(names, by, new Date(), HOUR_MS)).toThrow();
  expect(() => issueCertificate(names, { ...own, cert: "" }, new Date(), HOUR_MS)).toThrow();
});
