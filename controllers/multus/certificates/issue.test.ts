import { spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import type { AddressInfo } from "node:net";
import { connect, createServer } from "node:tls";
import * as fc from "fast-check";
import type { TlsPair } from "../../../system/net";
import { issueCertificate } from "./issue";
import { servable } from "./served";

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

test("a certificate is signed by its own key, and valid from a little earlier on", () => {
  const now = new Date("2026-05-06T07:08:09.123Z");
  const read = new X509Certificate(issueCertificate(names, now, 48 * HOUR_MS).cert);
  expect(read.issuer).toBe(read.subject);
  expect(read.ca).toBe(false);
  expect(read.verify(read.publicKey)).toBe(true);
  expect([read.validFrom, read.validTo].map((text) => new Date(text).toISOString())).toEqual([
    "2026-05-06T06:08:09.000Z",
    "2026-05-08T07:08:09.000Z",
  ]);
  expect(read.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: "prime256v1" });
});

test("each certificate has a unique serial number: positive, and of at most 20 bytes", () => {
  const made = Array.from({ length: 20 }, () => new X509Certificate(issueCertificate(names, new Date(), HOUR_MS).cert));
  expect(new Set(made.map(({ serialNumber }) => serialNumber)).size).toBe(20);
  for (const { serialNumber } of made) expect(serialNumber).toMatch(/^[4-7][0-9A-F]{31}$/);
});

test("openssl reads the intended content", () => {
  const { cert } = issueCertificate(names, new Date(), HOUR_MS);
  const options = { input: cert, encoding: "utf8" } as const;
  const printed = spawnSync("openssl", ["x509", "-noout", "-text"], options).stdout.replace(/\s+/g, " ");
  expect(printed).toContain("Version: 3 (0x2)");
  expect(printed).toContain("Signature Algorithm: ecdsa-with-SHA256");
  expect(printed).toContain(
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
      const pair = issueCertificate(wanted, now, validMs);
      const leaf = new X509Certificate(pair.cert);
      expect(leaf.verify(leaf.publicKey)).toBe(true);
      expect(leaf.subject).toMatch(/^CN=linkerd-multus [0-9a-f]{16}$/);
      expect(leaf.subjectAltName).toBe(wanted.map((name) => `DNS:${name}`).join(", "));
      const end = Math.floor((now.getTime() + validMs) / 1000) * 1000;
      expect(Date.parse(leaf.validTo)).toBe(end);
      expect(Date.parse(leaf.validFrom)).toBeLessThanOrEqual(now.getTime());
      expect(now.getTime() - Date.parse(leaf.validFrom)).toBeLessThanOrEqual(HOUR_MS + 1000);
      const expected = { ...pair, validFrom: Date.parse(leaf.validFrom), validTo: end };
      for (const name of wanted) expect(servable(pair, name)).toEqual(expected);
    }),
    { numRuns: 30 },
  );
});

test("clients that trust the certificate trust the server, by its names alone", async () => {
  const [pair, other] = [1, 2].map(() => issueCertificate(names, new Date(), HOUR_MS)) as [TlsPair, TlsPair];
  for (const name of names) expect(await connectTo(pair, pair.cert, name)).toBeUndefined();
  // Beside the former one.
  expect(await connectTo(pair, other.cert + pair.cert, names[0]!)).toBeUndefined();
  expect(await connectTo(pair, pair.cert, "other.ops.svc")).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
  expect(await connectTo(pair, other.cert, names[0]!)).toBe("DEPTH_ZERO_SELF_SIGNED_CERT");
  const day = 24 * HOUR_MS;
  const [past, future] = [-day, day].map((ms) => issueCertificate(names, new Date(Date.now() + ms), HOUR_MS));
  expect(await connectTo(past!, past!.cert, names[0]!)).toBe("CERT_HAS_EXPIRED");
  expect(await connectTo(future!, future!.cert, names[0]!)).toBe("CERT_NOT_YET_VALID");
});
