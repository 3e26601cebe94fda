import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, verify, X509Certificate } from "node:crypto";
import { authority, certificate, type KeyKind } from "./certificates.testing";
import { generateKey, publicKeyOf, randomBytes, randomUUID, readPair, sha256, sign } from "./crypto";

const text = (value: string) => new TextEncoder().encode(value);
const pemOf = (key: KeyObject, type: "pkcs8" | "pkcs1" | "sec1") => key.export({ type, format: "pem" }).toString();
const ec = generateKeyPairSync("ec", { namedCurve: "P-384" });
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });

test("hashes bytes", () => {
  expect(sha256(text("abc"))).toEqual(new Uint8Array(createHash("sha256").update("abc").digest()));
  expect(sha256(new Uint8Array(0))).toHaveLength(32);
});

test("gives random bytes and names", () => {
  expect(randomBytes(20)).toHaveLength(20);
  expect(randomBytes(20)).not.toEqual(randomBytes(20));
  expect(randomUUID()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test.each([
  ["made here", generateKey()],
  ["EC, PKCS#8", pemOf(ec.privateKey, "pkcs8")],
  ["EC PRIVATE KEY", pemOf(ec.privateKey, "sec1")],
  ["RSA, PKCS#8", pemOf(rsa.privateKey, "pkcs8")],
  ["RSA PRIVATE KEY", pemOf(rsa.privateKey, "pkcs1")],
])("signs by a key: %s", (_, key) => {
  const signature = sign(key, text("some bytes"));
  const publicKey = createPublicKey({ key: Buffer.from(publicKeyOf(key)), format: "der", type: "spki" });
  expect(verify("sha256", text("some bytes"), publicKey, signature)).toBe(true);
  expect(verify("sha256", text("other bytes"), publicKey, signature)).toBe(false);
});

test("a key is written as PKCS#8", () => {
  expect(generateKey()).toMatch(/^-----BEGIN PRIVATE KEY-----\n[\w+/=\n]+\n-----END PRIVATE KEY-----\n$/);
});

test.each(["P-256", "rsa", "P-384"] as const)("gives the public key as a certificate has it: %s", (kind: KeyKind) => {
  const { cert, key } = certificate({ subject: "leaf", key: kind });
  const inside = new X509Certificate(cert).publicKey.export({ type: "spki", format: "der" });
  expect(publicKeyOf(key)).toEqual(new Uint8Array(inside));
});

const { cert, key } = certificate({ subject: "leaf", by: authority("root") });
const cut = key.replace(/\n.{8}/, "\n");

test.each([
  ["nothing", ""],
  ["no PEM", "no key"],
  ["a certificate", cert],
  ["one that is cut", cut],
])("refuses as a key %s, and does not quote it", (_, wrong) => {
  const messages: string[] = [];
  const uses = [() => publicKeyOf(wrong), () => sign(wrong, text("some bytes")), () => readPair(cert, wrong, "a.svc")];
  for (const use of uses) {
    try {
      use();
    } catch (error) {
      messages.push((error as Error).message);
    }
  }
  expect(messages).toHaveLength(3);
  for (const message of messages) {
    expect(message).not.toBe("");
    expect(message).not.toContain(key.split("\n")[1]?.slice(8, 40));
  }
});

test("reads what a pair is valid for", () => {
  const made = certificate({ subject: "a.ops.svc", by: authority("root"), names: ["a.ops.svc", "*.b.svc"] });
  const { validFrom, validTo } = new X509Certificate(made.cert);
  const read = (name: string) => readPair(made.cert, made.key, name);
  expect(read("A.ops.svc")).toEqual({
    ...{ validFrom: Date.parse(validFrom), validTo: Date.parse(validTo) },
    isForName: true,
  });
  expect(read("x.b.svc").isForName).toBe(true);
  expect(read("x.y.b.svc").isForName).toBe(false);
  expect(readPair(cert, key, "leaf").isForName).toBe(false);
});

test.each([
  ["another key", cert, generateKey()],
  ["no certificate", "", key],
  ["an intermediate certificate that is cut off", `${cert}${cert.slice(0, 100)}\n`, key],
])("refuses a pair that cannot be served: %s", (_, wrong, itsKey) => {
  expect(() => readPair(wrong, itsKey, "leaf")).toThrow(/./);
});
