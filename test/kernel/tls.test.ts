/** The plugin's connection to the API server: real TLS servers, right ones and wrong ones, each with what an ADD does. */
import { createPrivateKey } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { join } from "node:path";
import type { TlsOptions } from "node:tls";
import { config, prevResult } from "../../plugin/protocol-cases.testing";
import { authority, type CertificateOptions, certificate, type Issued } from "../../system/certificates.testing";
import { ApiStub, json } from "../support/api-server";
import { hasProgram, namespacesMissing } from "../support/netns";
import { PluginNode } from "../support/plugin";
import { suite } from "../support/requirements";
import { type Connection, TlsServer, type TlsServerOptions } from "../support/tls-server";

jest.setTimeout(120_000);

const missing = namespacesMissing() ?? (hasProgram("nft") ? undefined : "nft");
const injected = {
  "linkerd.io/created-by": "linkerd/proxy-injector edge-26.7.1",
  "linkerd.io/proxy-version": "edge-26.7.1",
};
const POD = JSON.stringify({
  kind: "Pod",
  apiVersion: "v1",
  metadata: { name: "cart-1", namespace: "shop", annotations: injected },
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
const clientCa = authority("authority of clients");
const client = certificate({ subject: "linkerd-cni", by: clientCa, purpose: "clientAuth" });
const rsaClient = certificate({ subject: "linkerd-cni", by: clientCa, purpose: "clientAuth", key: "rsa" });

type Fields = Readonly<Record<string, unknown>>;

/** Requests that an ADD of a meshed pod must send. */
type Expected =
  | "redirects"
  /** Code 11, and no rule. */
  | RegExp
  /** Either: what an implementation of TLS lacks it has to name. */
  | { readonly redirectsOr: RegExp };

interface Case {
  readonly server?: Partial<TlsServerOptions>;
  /** Certificate and key of the server. @default good */
  readonly has?: Issued;
  /** Changes of the kubeconfig's cluster and user, and of the whole. PORT is the server's. */
  readonly cluster?: Fields;
  readonly user?: Fields;
  readonly kubeconfig?: Fields;
  /** Files beside the kubeconfig. */
  readonly files?: Readonly<Record<string, string>>;
  /** The runtime passes annotations that an injector wrote. */
  readonly annotations?: Fields;
  readonly does: Expected;
  /** Requests that the server gets. @default one for an ADD that redirects */
  readonly requests?: number;
}

const data = (text: string) => Buffer.from(text).toString("base64");
const trusts = (...certs: readonly string[]): Fields => ({ "certificate-authority-data": data(certs.join("")) });
const inFile = (text: string): Required<Pick<Case, "cluster" | "files">> => ({
  cluster: { "certificate-authority-data": undefined, "certificate-authority": "ca.crt" },
  files: { "ca.crt": text },
});
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
const named = (name: string): Fields => ({ "tls-server-name": name });

const asksForCertificate: Pick<Case, "server"> = {
  server: { tls: { requestCert: true, rejectUnauthorized: true, ca: clientCa.cert } },
};
const asksIn12: Pick<Case, "server"> = {
  server: { tls: { ...asksForCertificate.server?.tls, maxVersion: "TLSv1.2" } },
};
const shows = (cert: Issued, key = cert.key): Fields => ({
  "client-certificate-data": data(cert.cert),
  "client-key-data": data(key),
});
const keyAs = (type: "sec1" | "pkcs1", { key }: Issued) =>
  createPrivateKey(key).export({ type, format: "pem" }).toString();

const OK = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const LENGTH = `Content-Length: ${POD.length}\r\n`;
const WHOLE = `${OK}${LENGTH}\r\n${POD}`;
const status = (line: string, headers = "") => {
  const body = JSON.stringify({ kind: "Status", status: "Failure", reason: line });
  return `HTTP/1.1 ${line}\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
};
const chunk = (text: string, ending = "") => `${text.length.toString(16)}${ending}\r\n${text}\r\n`;
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
const clientRefused = /TLS|certificate|closed the connection|reset/;

const cases: Readonly<Record<string, Case>> = {
  // Names and addresses.
  "a certificate for its address": { does: "redirects" },
  "a certificate for another address": { has: server({ names: ["127.0.0.2"] }), does: untrusted },
  "a certificate for a name, asked by its address": { has: server({ names: ["kubernetes"] }), does: untrusted },
  "an address among several names": {
    has: server({ names: ["kubernetes", "10.96.0.1", "127.0.0.1", "::1"] }),
    does: "redirects",
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
    cluster: { server: "https://[::1]:PORT" },
    does: "redirects",
  },
  "an IPv6 address, and a certificate for another": {
    has: server({ names: ["::2", "127.0.0.1"] }),
    server: { address: "::1" },
    cluster: { server: "https://[::1]:PORT" },
    does: untrusted,
  },
  "an IPv6 address' text as a DNS name": {
    has: server({ names: [], dnsNames: ["::1"] }),
    server: { address: "::1" },
    cluster: { server: "https://[::1]:PORT" },
    does: untrusted,
  },
  "a host name": {
    has: server({ names: ["localhost"] }),
    cluster: { server: "https://localhost:PORT" },
    does: "redirects",
  },
  "a host name, and a certificate for its address": {
    cluster: { server: "https://localhost:PORT" },
    does: untrusted,
  },
  "tls-server-name as in the certificate": {
    has: server({ names: ["kubernetes"] }),
    cluster: named("kubernetes"),
    does: "redirects",
  },
  "tls-server-name in other letters": {
    has: server({ names: ["Kubernetes.Default"] }),
    cluster: named("kubernetes.default"),
    does: "redirects",
  },
  "another tls-server-name": {
    has: server({ names: ["kubernetes", "127.0.0.1"] }),
    cluster: named("kubernetes.default.svc"),
    does: untrusted,
  },
  "tls-server-name that is an address": {
    has: server({ names: ["10.96.0.1"] }),
    cluster: named("10.96.0.1"),
    does: "redirects",
  },
  "a wildcard": { has: server({ names: ["*.cluster.test"] }), cluster: named("api.cluster.test"), does: "redirects" },
  "a wildcard, one label too many": {
    has: server({ names: ["*.cluster.test"] }),
    cluster: named("a.api.cluster.test"),
    does: untrusted,
  },
  "a wildcard, one label too few": {
    has: server({ names: ["*.cluster.test"] }),
    cluster: named("cluster.test"),
    does: untrusted,
  },

  // Validity and authorities.
  "an expired certificate": { has: server({ fromDay: -30, toDay: -1 }), does: tooLate },
  "an expired certificate of an injected pod's cluster": {
    has: server({ fromDay: -30, toDay: -1 }),
    annotations: injected,
    does: "redirects",
    requests: 0,
  },
  "a certificate of tomorrow": { has: server({ fromDay: 1 }), does: tooEarly },
  "a certificate that is valid beyond 2050": { has: server({ toDay: 20_000 }), does: "redirects" },
  "an expired authority": { has: server({ by: expired }), cluster: trusts(expired.cert), does: tooLate },
  "another authority": { has: server({ by: other }), does: untrusted },
  "another authority of the same name": { has: server({ by: authority("test authority") }), does: untrusted },
  "one of a file's authorities": { cluster: trusts(other.cert, ca.cert), does: "redirects" },
  "an authority with two keys, the old one and the new one": {
    cluster: trusts(authority("test authority").cert, ca.cert),
    does: "redirects",
  },
  "no authority": { cluster: { "certificate-authority-data": undefined }, does: untrusted },
  "a file of the authority": { ...inFile(ca.cert), does: "redirects" },
  "an authority's file with comments": {
    ...inFile(`# by hand\nsubject=test\n\n${other.cert}# the right one\n${ca.cert}\n# end\n`),
    does: "redirects",
  },
  "an authority's file with Windows' line ends": { ...inFile(ca.cert.replaceAll("\n", "\r\n")), does: "redirects" },
  "an authority's file without a last line end": { ...inFile(ca.cert.trimEnd()), does: "redirects" },
  "an authority's file that also holds one of Ed25519": {
    ...inFile(`${edwards.cert}${ca.cert}`),
    does: "redirects",
  },
  "an authority's file that holds no certificate": { ...inFile("none\n"), does: /certificate.authority/ },
  "no file of the authority": {
    cluster: inFile("").cluster,
    does: /certificate-authority: the file cannot be read \(ENOENT\)/,
  },
  "an intermediate": { has: chain(server({ by: first }), first), does: "redirects" },
  "two intermediates": { has: chain(deep, second, first), does: "redirects" },
  "two intermediates in the other order": { has: chain(deep, first, second), does: "redirects" },
  "intermediates with the authority, and one that nobody asked for": {
    has: chain(deep, other, ca, first, second),
    does: "redirects",
  },
  "a missing intermediate": { has: chain(deep, second), does: untrusted },
  "a missing intermediate that the kubeconfig has": {
    has: deep,
    cluster: trusts(second.cert, first.cert, ca.cert),
    does: "redirects",
  },
  "a leaf that signed another": { has: chain(server({ by: good }), good), does: untrusted },
  "an authority that signed itself": { has: selfSigned, cluster: trusts(selfSigned.cert), does: "redirects" },
  "an authority that signed itself, not the kubeconfig's": { has: selfSigned, does: untrusted },
  "a leaf that signed itself": { has: selfSignedLeaf, cluster: trusts(selfSignedLeaf.cert), does: "redirects" },
  "a leaf that signed itself, not the kubeconfig's": { has: selfSignedLeaf, does: untrusted },
  "a leaf as the authority": { cluster: trusts(good.cert), does: "redirects" },
  "an intermediate as the authority": { has: deep, cluster: trusts(second.cert), does: "redirects" },
  "a certificate for clients": { has: server({ purpose: "clientAuth" }), does: untrusted },
  "a certificate that says no purpose": {
    has: certificate({ subject: "api", by: ca, names: ["127.0.0.1"] }),
    does: "redirects",
  },
  "a critical extension that nobody knows": {
    has: server({ hasUnknownExtension: true }),
    does: /certificate|TLS handshake failed/,
  },
  "name constraints that permit its address": { has: chain(server({ by: local }), local), does: "redirects" },
  "critical name constraints that permit its address": {
    has: chain(server({ by: localOnly }), localOnly),
    does: "redirects",
  },
  "name constraints that permit other addresses": { has: chain(server({ by: remote }), remote), does: constrained },
  "critical name constraints that exclude its address": {
    has: chain(server({ by: excluding }), excluding),
    does: constrained,
  },
  "name constraints of the kubeconfig's authority that exclude another of its names": {
    has: server({ by: rootOfNames, names: ["127.0.0.1", "api.shop.test"] }),
    cluster: trusts(rootOfNames.cert),
    does: constrained,
  },
  "a critical policy that no authority requires": { has: server({ hasPolicies: true }), does: "redirects" },
  "an authority that requires policies": {
    has: chain(server({ by: strict, hasPolicies: true }), strict),
    does: /its certificate is not trusted: critical extension policyConstraints of a certificate is not supported/,
  },
  "an IPv4-mapped address": { cluster: { server: "https://[::ffff:127.0.0.1]:PORT" }, does: "redirects" },

  "insecure-skip-tls-verify": {
    has: server({ by: other, names: ["nobody"], fromDay: -30, toDay: -1 }),
    cluster: { "certificate-authority-data": undefined, "insecure-skip-tls-verify": true },
    does: "redirects",
  },

  // Keys, signatures, versions.
  RSA: { has: server({ key: "rsa", by: rsaCa }), cluster: trusts(rsaCa.cert), does: "redirects" },
  "RSA that signed for P-256": { has: server({ by: rsaCa }), cluster: trusts(rsaCa.cert), does: "redirects" },
  "P-384": { has: server({ key: "P-384", hash: "sha384" }), does: "redirects" },
  "P-521": { has: server({ key: "P-521" }), does: "redirects" },
  Ed25519: { has: server({ key: "Ed25519" }), does: { redirectsOr: /Ed25519/i } },
  "an authority of Ed25519": {
    has: server({ by: edwards }),
    cluster: trusts(edwards.cert),
    does: { redirectsOr: /Ed25519/i },
  },
  "a signature with SHA-1": {
    has: server({ by: rsaCa, hash: "sha1" }),
    cluster: trusts(rsaCa.cert),
    server: { tls: { ciphers: "DEFAULT:@SECLEVEL=0" } },
    does: { redirectsOr: /SHA-?1/i },
  },
  "only TLS 1.2": { ...only("TLSv1.2"), does: "redirects" },
  "only TLS 1.2, with RSA": {
    ...only("TLSv1.2"),
    has: server({ key: "rsa", by: rsaCa }),
    cluster: trusts(rsaCa.cert),
    does: "redirects",
  },
  "only TLS 1.2, an untrusted certificate": { ...only("TLSv1.2"), has: server({ by: other }), does: untrusted },
  "only TLS 1.3": { ...only("TLSv1.3"), does: "redirects" },
  "RSA of 1,024 bits": {
    has: server({ key: "rsa-1024", by: rsaCa }),
    cluster: trusts(rsaCa.cert),
    server: { tls: { ciphers: "DEFAULT:@SECLEVEL=0" } },
    does: { redirectsOr: /RSA keys need 2048 bits/ },
  },
  "certificates of more than 16 KB": {
    has: server({ names: ["127.0.0.1", ...Array.from({ length: 1000 }, (_, at) => `name-${at}.cluster.example`)] }),
    does: { redirectsOr: /16 KB/ },
  },
  "certificates of more than 16 KB in TLS 1.2": {
    ...only("TLSv1.2"),
    has: server({ names: ["127.0.0.1", ...Array.from({ length: 1000 }, (_, at) => `name-${at}.cluster.example`)] }),
    does: { redirectsOr: /16 KB/ },
  },
  // A server with post-quantum groups alone sends the same alert.
  "only a group that the client lacks": {
    server: { tls: { ecdhCurve: "secp224r1", maxVersion: "TLSv1.2" } },
    has: server({ key: "rsa", by: rsaCa }),
    cluster: trusts(rsaCa.cert),
    does: { redirectsOr: /alert 40.*groups X25519/ },
  },
  "only TLS 1.1": { ...only("TLSv1.1"), does: refusedHandshake },

  // Client certificates.
  "a client certificate": { ...asksForCertificate, user: shows(client), does: "redirects" },
  "a client certificate in TLS 1.2": { ...asksIn12, user: shows(client), does: "redirects" },
  "a client certificate of RSA": { ...asksForCertificate, user: shows(rsaClient), does: "redirects" },
  "a client certificate with a key as OpenSSL writes it": {
    ...asksForCertificate,
    user: shows(client, keyAs("sec1", client)),
    does: "redirects",
  },
  "a client certificate with a key as kubeadm writes it": {
    ...asksForCertificate,
    user: shows(rsaClient, keyAs("pkcs1", rsaClient)),
    does: "redirects",
  },
  "a client certificate in files": {
    ...asksForCertificate,
    user: { "client-certificate": "client.crt", "client-key": "client.key" },
    files: { "client.crt": client.cert, "client.key": client.key },
    does: "redirects",
  },
  "a client certificate that is missing": { ...asksForCertificate, does: clientRefused },
  "a client certificate that is missing in TLS 1.2": { ...asksIn12, does: clientRefused },
  "a client certificate of another authority": { ...asksForCertificate, user: shows(good), does: clientRefused },
  "a client certificate with another's key": {
    ...asksForCertificate,
    user: shows(client, good.key),
    does: /certificate|key/,
  },
  "a client certificate that nobody asks for": { user: shows(client), does: "redirects" },

  // Connections that end.
  "closes after accepting": { ...onAccept((socket) => void socket.end()), does: refusedHandshake },
  "closes after the ClientHello": { ...onHello((socket) => void socket.end()), does: refusedHandshake },
  "closes after the handshake": { ...onHandshake(({ socket }) => void socket.end()), does: incomplete },
  "closes after the request": { ...closes(""), does: incomplete, requests: 2 },
  "closes in the middle of the head": { ...closes(OK), does: incomplete },
  "closes in the middle of the body": { ...closes(WHOLE.slice(0, -20)), does: incomplete },
  "closes in the middle of a chunk": {
    ...closes(`${OK}Transfer-Encoding: chunked\r\n\r\n${chunk(POD).slice(0, -20)}`),
    does: incomplete,
  },
  "resets after accepting": { ...onAccept((socket) => void socket.resetAndDestroy()), does: refusedHandshake },
  "resets after the ClientHello": { ...onHello((socket) => void socket.resetAndDestroy()), does: refusedHandshake },
  "resets after the handshake": { ...onHandshake(({ reset }) => reset()), does: incomplete },
  "resets after the request": { ...resets(""), does: incomplete, requests: 2 },
  "resets in the middle of the head": { ...resets(OK), does: incomplete },
  "resets in the middle of the body": { ...resets(WHOLE.slice(0, -20)), does: incomplete },
  "resets once": {
    server: {
      answer: (connection) => {
        if (connection.count === 1) connection.reset();
        else connection.socket.write(WHOLE);
      },
    },
    does: "redirects",
    requests: 2,
  },
  "says nothing after accepting": { ...onAccept(() => undefined), does: timeIsOver },
  "says nothing after the handshake": { ...onHandshake(() => undefined), does: timeIsOver },
  "says nothing after the request": { ...says(""), does: timeIsOver },
  "says nothing more in the body": { ...says(WHOLE.slice(0, -20)), does: timeIsOver },
  "says nothing, to an injected pod": { ...says(""), annotations: injected, does: "redirects" },
  "speaks no TLS": {
    ...onHello((socket) => void socket.end("HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request")),
    does: refusedHandshake,
  },
  "speaks at once, and no TLS": { ...onAccept((socket) => void socket.end("220 mail\r\n")), does: refusedHandshake },

  // Answers.
  drips: { ...drips(WHOLE), does: "redirects" },
  chunked: {
    ...says(`${OK}Transfer-Encoding: chunked\r\n\r\n${chunk(POD.slice(0, 20))}${chunk(POD.slice(20))}0\r\n\r\n`),
    does: "redirects",
  },
  "chunked with extensions": {
    ...says(`${OK}Transfer-Encoding: Chunked\r\n\r\n${chunk(POD, ';a="b"')}0;last\r\n\r\n`),
    does: "redirects",
  },
  "chunked with a trailer": {
    ...closes(`${OK}Transfer-Encoding: chunked\r\n\r\n${chunk(POD)}0\r\nDigest: x\r\n\r\n`),
    does: "redirects",
  },
  "chunked, one byte a chunk": {
    ...says(`${OK}Transfer-Encoding: chunked\r\n\r\n${[...POD].map((char) => chunk(char)).join("")}0\r\n\r\n`),
    does: "redirects",
  },
  "malformed chunks": { ...says(`${OK}Transfer-Encoding: chunked\r\n\r\nx\r\n\r\n\r\n`), does: /malformed chunk/ },
  "until it closes": { ...closes(`${OK}\r\n${POD}`), does: "redirects" },
  "header names in small letters": { ...says(WHOLE.replace("Content-Length", "content-length")), does: "redirects" },
  "an interim answer": {
    ...says(`HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n${WHOLE}`),
    does: "redirects",
  },
  "an endless head": { ...endless("HTTP/1.1 200 OK\r\n", "X: y\r\n"), does: /more than \d+ bytes/ },
  "an endless body": { ...endless(`${OK}\r\n`, " "), does: /more than \d+ bytes/ },
  "endless chunks": {
    ...endless(`${OK}Transfer-Encoding: chunked\r\n\r\n`, chunk(" ".repeat(1000))),
    does: /more than \d+ bytes/,
  },
  "a body of terabytes": { ...endless(`${OK}Content-Length: 9999999999999\r\n\r\n`, " "), does: /more than \d+ bytes/ },
  "endless interim answers": { ...endless("", "HTTP/1.1 100 Continue\r\n\r\n"), does: /more than \d+/ },
  "another protocol in TLS": { ...says("220 mail.example.org ESMTP\r\n\r\n"), does: /220 mail.*is not HTTP\/1\.1/ },
  "no body": { ...says(`${OK}Content-Length: 0\r\n\r\n`), does: /answer for pod shop\/cart-1/ },
  "a body that is not JSON": {
    ...says(`${OK}Content-Length: 6\r\n\r\n<html>`),
    does: /answer for pod shop\/cart-1/,
  },
  "302": { ...says(status("302 Found", "Location: https://127.0.0.1:1/\r\n")), does: /answered 302/ },
  "401": { ...says(status("401 Unauthorized")), does: /answered 401: the token in .* has expired/ },
  "403": { ...says(status("403 Forbidden")), does: /answered 403 when asked for pod shop\/cart-1/ },
  "404": { ...says(status("404 Not Found")), does: /answered 404 when asked for pod shop\/cart-1/ },
  "500": { ...says(status("500 Internal Server Error")), does: /answered 500 when asked for pod shop\/cart-1/ },
  "503, to an injected pod": {
    ...says(status("503 Service Unavailable")),
    annotations: injected,
    does: "redirects",
  },
  "429 once": {
    server: {
      answer: ({ socket, count }) =>
        void socket.write(count === 1 ? status("429 Too Many Requests", "Retry-After: 1\r\n") : WHOLE),
    },
    does: "redirects",
    requests: 2,
  },
  "429 again and again": {
    ...says(status("429 Too Many Requests", "Retry-After: 1\r\n")),
    does: /answered 429 when asked for pod shop\/cart-1/,
    requests: 2,
  },
  "429 for longer than a call may take": {
    ...says(status("429 Too Many Requests", "Retry-After: 600\r\n")),
    does: /answered 429 when asked for pod shop\/cart-1/,
    requests: 1,
  },

  // Kubeconfigs.
  "no current-context, and one context": { kubeconfig: { "current-context": undefined }, does: "redirects" },
  "no current-context, and two contexts": {
    kubeconfig: {
      "current-context": undefined,
      contexts: ["a", "b"].map((name) => ({ name, context: { cluster: "local", user: "linkerd-cni" } })),
    },
    does: /current-context|contexts/,
  },
};

const names = Object.keys(cases);

interface Outcome {
  readonly status: number | null;
  readonly message: string;
  readonly stderr: string;
  readonly document: unknown;
  readonly rules: string;
  readonly requests: number;
}

/** Cases that wait for the deadline: they run beside the others. */
const isSlow = (name: string) => cases[name]?.does === timeIsOver || name.startsWith("says nothing");

suite("the API server", missing, () => {
  let plugin: PluginNode;
  const slow = new Map<string, Promise<Outcome>>();

  beforeAll(async () => {
    const stub = await ApiStub.start(json(500, {}));
    plugin = await PluginNode.open(stub);
    stub.close();
    for (const name of names.filter(isSlow)) slow.set(name, outcomeOf(name));
  });
  afterAll(async () => {
    await Promise.allSettled(slow.values());
    await plugin.close();
  });

  /** Writes the kubeconfig of a case, and the files beside it. */
  async function configure(name: string, { files = {}, ...one }: Case, port: number): Promise<string> {
    const directory = join(plugin.directory, `case-${names.indexOf(name)}`);
    await mkdir(directory);
    for (const [file, text] of Object.entries(files)) await writeFile(join(directory, file), text);
    const cluster = { server: "https://127.0.0.1:PORT", ...trusts(ca.cert), ...one.cluster };
    const kubeconfig = {
      clusters: [{ name: "local", cluster }],
      users: [{ name: "linkerd-cni", user: { token: "secret", ...one.user } }],
      contexts: [{ name: "linkerd-cni-context", context: { cluster: "local", user: "linkerd-cni" } }],
      "current-context": "linkerd-cni-context",
      ...one.kubeconfig,
    };
    const path = join(directory, "kubeconfig");
    await writeFile(path, JSON.stringify(kubeconfig).replace("PORT", `${port}`));
    return path;
  }

  async function outcomeOf(name: string): Promise<Outcome> {
    const one = cases[name] as Case;
    const { cert, key } = one.has ?? good;
    const answer = ({ socket }: Connection) => void socket.write(WHOLE);
    const server = await TlsServer.start({ answer, ...one.server, tls: { cert, key, ...one.server?.tls } });
    try {
      const pod = await plugin.node.pod();
      const kubernetes = { kubeconfig: await configure(name, one, server.port) };
      const runtimeConfig =
        one.annotations === undefined ? {} : { "io.kubernetes.cri.pod-annotations": one.annotations };
      const called = await plugin.call(plugin.environment(pod), { ...config, kubernetes, runtimeConfig });
      const rules = plugin.node.within(pod, "nft", ["list", "ruleset"]);
      plugin.node.release(pod);
      const message = (called.document as { readonly msg?: string }).msg ?? "";
      return { ...called, message, rules, requests: server.requests.length };
    } finally {
      server.close();
    }
  }

  it.each(names)("%s", async (name) => {
    const { does, annotations, requests = does === "redirects" ? 1 : undefined } = cases[name] as Case;
    const { status, document, stderr, rules, ...outcome } = await (slow.get(name) ?? outcomeOf(name));
    const refusal = does instanceof RegExp ? does : does === "redirects" || status === 0 ? undefined : does.redirectsOr;
    if (refusal === undefined) {
      expect([status, document]).toEqual([0, prevResult]);
      expect(stderr).toContain(annotations === undefined ? "redirected" : "deciding by the annotations alone");
      expect(rules.match(/redirect to/g)).toHaveLength(2);
    } else {
      expect(document).toMatchObject({ code: 11, msg: expect.stringMatching(refusal) });
      expect([status, rules]).toEqual([1, ""]);
    }
    if (requests !== undefined) expect(outcome.requests).toBe(requests);
    // A server that is not trusted must not get the token.
    if (outcome.message.includes("not trusted")) expect(outcome.requests).toBe(0);
  });
});
