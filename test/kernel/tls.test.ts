/** A connection to the API server: real TLS servers, right ones and wrong ones, each with what a request does. */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TlsOptions } from "node:tls";
import { promisify } from "node:util";
import { buildExecutable } from "../../build/engine";
import { root } from "../../build/paths";
import { PRODUCT } from "../../build/programs";
import type { ApiServer } from "../../kubernetes/api-server";
import { authority, type CertificateOptions, certificate, type Issued } from "../../system/certificates.testing";
import { type Connection, TlsServer, type TlsServerOptions } from "../support/tls-server";

const POD = JSON.stringify({
  kind: "Pod",
  apiVersion: "v1",
  metadata: { name: "cart-1", namespace: "shop", annotations: {} },
  spec: { containers: [{ name: "app" }, { name: "linkerd-proxy" }] },
});

const ca = authority("test authority");
const other = authority("another authority");
const server = (changes: Partial<Parameters<typeof certificate>[0]> = {}) =>
  certificate({ subject: "kube-apiserver", by: ca, names: ["127.0.0.1"], purpose: "serverAuth", ...changes });
const good = server();

const first = authority("first intermediate", { by: ca });
const second = authority("second intermediate", { by: first });
const deep = server({ by: second });

const constraining = (name: string, constraints: CertificateOptions["constraints"], constraintsAreCritical = false) =>
  authority(name, { by: ca, constraintsAreCritical, ...(constraints === undefined ? {} : { constraints }) });
const local = constraining("authority of 127/8", { permitted: ["127.0.0.0/8"] });
const localOnly = constraining("strict authority of 127/8", { permitted: ["127.0.0.0/8", "svc"] }, true);
const remote = constraining("authority of 10/8", { permitted: ["10.0.0.0/8"] });
const excluding = constraining("authority of all but 127.0.0.1", { excluded: ["127.0.0.1/32"] }, true);
const rootOfNames = authority("root of all but shop.test", { constraints: { excluded: ["shop.test"] } });
const strict = authority("authority with policies", { by: ca, hasPolicies: true });

const selfSigned = authority("api", { names: ["127.0.0.1"] });
const selfSignedLeaf = certificate({ subject: "api", names: ["127.0.0.1"] });
const expired = authority("expired authority", { fromDay: -30, toDay: -1 });
const edwards = authority("authority with Ed25519", { key: "Ed25519" });
const rsaCa = authority("authority with RSA", { key: "rsa" });

/** What a request ends in. */
type Expected =
  | "answers"
  /** An error, and no answer. */
  | RegExp
  /** Either: what an implementation of TLS lacks it has to name. */
  | { readonly answersOr: RegExp };

interface Case {
  readonly server?: Partial<TlsServerOptions>;
  /** Certificate and key of the server. @default good */
  readonly has?: Issued;
  /** Changes of the client's trust. */
  readonly trust?: Partial<ApiServer>;
  readonly does: Expected;
  /** Requests that the server gets. @default one for an answer */
  readonly requests?: number;
}

const trusts = (...certs: readonly string[]): Partial<ApiServer> => ({ ca: certs.join("") });
const chain = (leaf: Issued, ...certs: readonly Issued[]): Issued => ({
  ...leaf,
  cert: [leaf, ...certs].map(({ cert }) => cert).join(""),
});
const only = (version: NonNullable<TlsOptions["minVersion"]>): Pick<Case, "server"> => ({
  server: {
    // OpenSSL's usual level of security has nothing below 1.2.
    tls: { minVersion: version, maxVersion: version, ciphers: "DEFAULT:@SECLEVEL=0" },
  },
});
const OK = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const LENGTH = `Content-Length: ${POD.length}\r\n`;
const WHOLE = `${OK}${LENGTH}\r\n${POD}`;
const says = (text: string): Pick<Case, "server"> => ({ server: { answer: ({ socket }) => void socket.write(text) } });
const closes = (text: string): Pick<Case, "server"> => ({ server: { answer: ({ socket }) => void socket.end(text) } });
const resets = (text: string): Pick<Case, "server"> => ({
  server: { answer: (connection) => void connection.socket.write(text, () => connection.reset()) },
});

/** Writes as long as the client reads. */
function endless(begin: string, piece: string): Pick<Case, "server"> {
  const text = piece.repeat(Math.ceil(65536 / piece.length));
  const pour = ({ socket }: Connection) => {
    while (socket.writable && socket.write(text)) {}
    if (socket.writable) socket.once("drain", () => pour({ socket } as Connection));
  };
  return {
    server: {
      answer(connection) {
        connection.socket.write(begin);
        pour(connection);
      },
    },
  };
}

/** One byte each millisecond. */
function drips(text: string): Pick<Case, "server"> {
  return {
    server: {
      answer({ socket }) {
        let at = 0;
        const timer = setInterval(() => {
          if (at === text.length || !socket.writable) clearInterval(timer);
          else socket.write(text.charAt(at++));
        }, 1);
      },
    },
  };
}

const onAccept = (onAccept: (socket: Socket) => void): Pick<Case, "server"> => ({ server: { onAccept } });
const onHello = (then: (socket: Socket) => void) => onAccept((socket) => void socket.once("data", () => then(socket)));
const onHandshake = (onHandshake: (connection: Connection) => void): Pick<Case, "server"> => ({
  server: { onHandshake },
});

const untrusted = /its certificate is not trusted: ./;
const constrained =
  /its certificate is not trusted: a certificate authority may not vouch for (address 127\.0\.0\.1|DNS name)/;
const tooLate = /its certificate is not trusted: .*expired/;
const tooEarly = /its certificate is not trusted: .*(not yet valid|in the future)/;
const timeIsOver = /no (connection|answer) within \d+ ms/;
const refusedHandshake = /the TLS handshake failed|broke during the TLS handshake|was reset/;
const incomplete = /closed the connection|broke|reset/;

const cases: Readonly<Record<string, Case>> = {
  // Names and addresses.
  "a certificate for its address": { does: "answers" },
  "a certificate for another address": { has: server({ names: ["127.0.0.2"] }), does: untrusted },
  "a certificate for a name, asked by its address": { has: server({ names: ["kubernetes"] }), does: untrusted },
  "an address among several names": {
    has: server({ names: ["kubernetes", "10.96.0.1", "127.0.0.1", "::1"] }),
    does: "answers",
  },
  "an address only as the common name": { has: server({ subject: "127.0.0.1", names: [] }), does: untrusted },
  "an address' text as a DNS name": { has: server({ names: [], dnsNames: ["127.0.0.1"] }), does: untrusted },
  "an address' text as a DNS name beside another address": {
    has: server({ names: ["127.0.0.2"], dnsNames: ["127.0.0.1"] }),
    does: untrusted,
  },
  "an IPv6 address": {
    has: server({ names: ["::1"] }),
    server: { address: "::1" },
    trust: { host: "::1" },
    does: "answers",
  },
  "an IPv6 address, and a certificate for another": {
    has: server({ names: ["::2", "127.0.0.1"] }),
    server: { address: "::1" },
    trust: { host: "::1" },
    does: untrusted,
  },
  "an IPv6 address' text as a DNS name": {
    has: server({ names: [], dnsNames: ["::1"] }),
    server: { address: "::1" },
    trust: { host: "::1" },
    does: untrusted,
  },
  "a host name": {
    has: server({ names: ["localhost"] }),
    trust: { host: "localhost" },
    does: "answers",
  },
  "a host name in other letters": {
    has: server({ names: ["LocalHost"] }),
    trust: { host: "localhost" },
    does: "answers",
  },
  "a host name, and a certificate for its address": {
    trust: { host: "localhost" },
    does: untrusted,
  },

  // Validity and authorities.
  "an expired certificate": { has: server({ fromDay: -30, toDay: -1 }), does: tooLate },
  "a certificate of tomorrow": { has: server({ fromDay: 1 }), does: tooEarly },
  "a certificate that is valid beyond 2050": { has: server({ toDay: 20_000 }), does: "answers" },
  "an expired authority": { has: server({ by: expired }), trust: trusts(expired.cert), does: tooLate },
  "another authority": { has: server({ by: other }), does: untrusted },
  "another authority of the same name": { has: server({ by: authority("test authority") }), does: untrusted },
  "one of a file's authorities": { trust: trusts(other.cert, ca.cert), does: "answers" },
  "an authority with two keys, the old one and the new one": {
    trust: trusts(authority("test authority").cert, ca.cert),
    does: "answers",
  },
  "no authority": { trust: { ca: "" }, does: untrusted },
  "an intermediate": { has: chain(server({ by: first }), first), does: "answers" },
  "two intermediates": { has: chain(deep, second, first), does: "answers" },
  "two intermediates in the other order": { has: chain(deep, first, second), does: "answers" },
  "intermediates with the authority, and one that nobody asked for": {
    has: chain(deep, other, ca, first, second),
    does: "answers",
  },
  "a missing intermediate": { has: chain(deep, second), does: untrusted },
  "a missing intermediate that the client has": {
    has: deep,
    trust: trusts(second.cert, first.cert, ca.cert),
    does: "answers",
  },
  "a leaf that signed another": { has: chain(server({ by: good }), good), does: untrusted },
  "an authority that signed itself": { has: selfSigned, trust: trusts(selfSigned.cert), does: "answers" },
  "an authority that signed itself, not the client's": { has: selfSigned, does: untrusted },
  "a leaf that signed itself": { has: selfSignedLeaf, trust: trusts(selfSignedLeaf.cert), does: "answers" },
  "a leaf that signed itself, not the client's": { has: selfSignedLeaf, does: untrusted },
  "a leaf as the authority": { trust: trusts(good.cert), does: "answers" },
  "an intermediate as the authority": { has: deep, trust: trusts(second.cert), does: "answers" },
  "a certificate for clients": { has: server({ purpose: "clientAuth" }), does: untrusted },
  "a certificate that says no purpose": {
    has: certificate({ subject: "api", by: ca, names: ["127.0.0.1"] }),
    does: "answers",
  },
  "a critical extension that nobody knows": {
    has: server({ hasUnknownExtension: true }),
    does: /certificate|TLS handshake failed/,
  },
  "name constraints that permit its address": { has: chain(server({ by: local }), local), does: "answers" },
  "critical name constraints that permit its address": {
    has: chain(server({ by: localOnly }), localOnly),
    does: "answers",
  },
  "name constraints that permit other addresses": { has: chain(server({ by: remote }), remote), does: constrained },
  "critical name constraints that exclude its address": {
    has: chain(server({ by: excluding }), excluding),
    does: constrained,
  },
  "name constraints of the client's authority that exclude another of its names": {
    has: server({ by: rootOfNames, names: ["127.0.0.1", "api.shop.test"] }),
    trust: trusts(rootOfNames.cert),
    does: constrained,
  },
  "a critical policy that no authority requires": { has: server({ hasPolicies: true }), does: "answers" },
  "an authority that requires policies": {
    has: chain(server({ by: strict, hasPolicies: true }), strict),
    does: /its certificate is not trusted: critical extension policyConstraints of a certificate is not supported/,
  },
  "an IPv4-mapped address": { trust: { host: "::ffff:127.0.0.1" }, does: "answers" },

  // Keys, signatures, versions.
  RSA: { has: server({ key: "rsa", by: rsaCa }), trust: trusts(rsaCa.cert), does: "answers" },
  "RSA that signed for P-256": { has: server({ by: rsaCa }), trust: trusts(rsaCa.cert), does: "answers" },
  "P-384": { has: server({ key: "P-384", hash: "sha384" }), does: "answers" },
  "P-521": { has: server({ key: "P-521" }), does: "answers" },
  Ed25519: { has: server({ key: "Ed25519" }), does: { answersOr: /Ed25519/i } },
  "an authority of Ed25519": {
    has: server({ by: edwards }),
    trust: trusts(edwards.cert),
    does: { answersOr: /Ed25519/i },
  },
  "a signature with SHA-1": {
    has: server({ by: rsaCa, hash: "sha1" }),
    trust: trusts(rsaCa.cert),
    server: { tls: { ciphers: "DEFAULT:@SECLEVEL=0" } },
    does: { answersOr: /SHA-?1/i },
  },
  "only TLS 1.2": { ...only("TLSv1.2"), does: "answers" },
  "only TLS 1.2, with RSA": {
    ...only("TLSv1.2"),
    has: server({ key: "rsa", by: rsaCa }),
    trust: trusts(rsaCa.cert),
    does: "answers",
  },
  "only TLS 1.2, an untrusted certificate": { ...only("TLSv1.2"), has: server({ by: other }), does: untrusted },
  "only TLS 1.3": { ...only("TLSv1.3"), does: "answers" },
  "RSA of 1,024 bits": {
    has: server({ key: "rsa-1024", by: rsaCa }),
    trust: trusts(rsaCa.cert),
    server: { tls: { ciphers: "DEFAULT:@SECLEVEL=0" } },
    does: { answersOr: /RSA keys need 2048 bits/ },
  },
  "certificates of more than 16 KB": {
    has: server({ names: ["127.0.0.1", ...Array.from({ length: 1000 }, (_, at) => `name-${at}.cluster.example`)] }),
    does: { answersOr: /16 KB/ },
  },
  "certificates of more than 16 KB in TLS 1.2": {
    ...only("TLSv1.2"),
    has: server({ names: ["127.0.0.1", ...Array.from({ length: 1000 }, (_, at) => `name-${at}.cluster.example`)] }),
    does: { answersOr: /16 KB/ },
  },
  // A server with post-quantum groups alone sends the same alert.
  "only a group that the client lacks": {
    server: { tls: { ecdhCurve: "secp224r1", maxVersion: "TLSv1.2" } },
    has: server({ key: "rsa", by: rsaCa }),
    trust: trusts(rsaCa.cert),
    does: { answersOr: /alert 40.*groups X25519/ },
  },
  "only TLS 1.1": { ...only("TLSv1.1"), does: refusedHandshake },

  // Connections that end: how each one's end is read is beside the HTTP client.
  "closes after the handshake": { ...onHandshake(({ socket }) => void socket.end()), does: incomplete },
  "closes in the middle of the body": { ...closes(WHOLE.slice(0, -20)), does: incomplete },
  "resets after the request": { ...resets(""), does: incomplete, requests: 1 },
  "resets in the middle of the body": { ...resets(WHOLE.slice(0, -20)), does: incomplete },
  "says nothing after accepting": { ...onAccept(() => undefined), does: timeIsOver },
  "says nothing after the request": { ...says(""), does: timeIsOver },
  "speaks no TLS": {
    ...onHello((socket) => void socket.end("HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request")),
    does: refusedHandshake,
  },

  // Answers.
  drips: { ...drips(WHOLE), does: "answers" },
  "an endless body": { ...endless(`${OK}\r\n`, " "), does: /more than \d+ bytes/ },
};

const names = Object.keys(cases);

interface Outcome {
  readonly status?: number;
  readonly body?: string;
  readonly error?: string;
  readonly requests: number;
}

const SILENCE_MS = 3000;
/** Cases that wait for the deadline: they run beside the others. */
const isSlow = (name: string) => cases[name]?.does === timeIsOver || name.startsWith("says nothing");

describe("the API server", () => {
  let directory: string;
  let executable: string;
  const slow = new Map<string, Promise<Outcome>>();

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "tls-"));
    executable = join(directory, "ask");
    await buildExecutable(executable, { ...PRODUCT, programs: { ask: join(root, "test", "support", "ask.main.ts") } });
    for (const name of names.filter(isSlow)) slow.set(name, outcomeOf(name));
  });
  afterAll(async () => {
    await Promise.allSettled(slow.values());
    await rm(directory, { recursive: true });
  });

  async function outcomeOf(name: string): Promise<Outcome> {
    const one = cases[name] as Case;
    const { cert, key } = one.has ?? good;
    const answer = ({ socket }: Connection) => void socket.write(WHOLE);
    const server = await TlsServer.start({ answer, ...one.server, tls: { cert, key, ...one.server?.tls } });
    try {
      const to: ApiServer = { host: "127.0.0.1", port: server.port, ca: ca.cert, token: "secret", ...one.trust };
      const limitMs = isSlow(name) ? SILENCE_MS : 60_000;
      const { stdout } = await promisify(execFile)(executable, ["ask", JSON.stringify(to), String(limitMs)]);
      return { ...JSON.parse(stdout), requests: server.requests.length };
    } finally {
      server.close();
    }
  }

  it.each(names)("%s", async (name) => {
    const { does, requests = does === "answers" ? 1 : undefined } = cases[name] as Case;
    const { status, body, error = "", ...outcome } = await (slow.get(name) ?? outcomeOf(name));
    const refusal = does instanceof RegExp ? does : does === "answers" || status === 200 ? undefined : does.answersOr;
    if (refusal === undefined) expect([error, status, body]).toEqual(["", 200, POD]);
    else expect([status, error]).toEqual([undefined, expect.stringMatching(refusal)]);
    if (requests !== undefined) expect(outcome.requests).toBe(requests);
    // A server that is not trusted must not get the token.
    if (error.includes("not trusted")) expect(outcome.requests).toBe(0);
  });
});
