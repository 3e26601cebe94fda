/** The C host's TLS, against real servers: what is trusted, and how a connection ends. */
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { constants } from "node:os";
import { createServer, type TLSSocket, type TlsOptions } from "node:tls";
import type { TlsFailure } from "../../host/port";
import { type Issued, certificate as issue, type KeyKind } from "../../system/certificates.testing";
import { HostProgram, type Step, type StepServer } from "../support/host";
import { namespacesMissing } from "../support/netns";
import { suite } from "../support/requirements";

jest.setTimeout(600_000);

const { ECONNREFUSED, ECONNRESET, EINVAL, ETIMEDOUT } = constants.errno;
const LIMIT = 30_000;
const DAY = 24 * 60 * 60 * 1000;

interface Name {
  readonly kind: "dnsNames" | "names";
  readonly value: string;
}
const dns = (value: string): Name => ({ kind: "dnsNames", value });
const ip = (value: string): Name => ({ kind: "names", value });

interface CertificateOptions {
  readonly names?: readonly Name[];
  readonly issuer?: Issued;
  readonly isCa?: boolean;
  readonly from?: Date;
  readonly to?: Date;
  readonly key?: KeyKind;
  readonly hash?: "sha1" | "sha256";
  readonly cn?: string;
}

const day = (date: Date) => (date.getTime() - Date.now()) / DAY;

function certificate(options: CertificateOptions = {}): Issued {
  const { names = [], issuer, isCa = false, key = "P-256", hash = "sha256", cn = `test ${Math.random()}` } = options;
  const { from = new Date(Date.now() - DAY), to = new Date(Date.now() + DAY) } = options;
  const of = (wanted: Name["kind"]) => names.filter(({ kind }) => kind === wanted).map(({ value }) => value);
  return issue({
    subject: cn,
    key,
    hash,
    isAuthority: isCa,
    ...{ names: of("names"), dnsNames: of("dnsNames") },
    ...{ fromDay: day(from), toDay: day(to) },
    ...(issuer === undefined ? {} : { by: issuer }),
  });
}

let host: HostProgram;
let authority: Issued;
let good: Issued;
let client: Issued;
const open: (Server | Socket)[] = [];

beforeAll(async () => {
  host = await HostProgram.build();
  authority = certificate({ isCa: true });
  good = certificate({
    issuer: authority,
    names: [ip("127.0.0.1"), ip("::1"), dns("api.example"), dns("*.wild.example")],
  });
  client = certificate({ issuer: authority });
});
afterEach(() => {
  for (const each of open.splice(0)) "close" in each ? each.close() : each.destroy();
});
afterAll(() => host.close());

async function listen(server: Server, address = "127.0.0.1"): Promise<number> {
  open.push(server);
  server.on("connection", (socket: Socket) => open.push(socket));
  server.listen(0, address);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Answers what it is sent, until the client closes. */
const echo = (socket: TLSSocket) => {
  socket.on("error", () => {});
  socket.pipe(socket);
};

function serve(
  options: TlsOptions = {},
  serveClient: (socket: TLSSocket) => void = echo,
  address?: string,
): Promise<number> {
  const server = createServer({ ...good, ...options }, serveClient);
  server.on("tlsClientError", () => {});
  return listen(server, address);
}

/** A server that speaks no TLS, or a part of it. */
function serveTcp(serveClient: (socket: Socket) => void): Promise<number> {
  return listen(
    createTcpServer((socket) => {
      socket.on("error", () => {});
      serveClient(socket);
    }),
  );
}

const server = (port: number, changes: Partial<StepServer> = {}): StepServer => ({
  address: "127.0.0.1",
  port,
  name: "127.0.0.1",
  ca: authority.cert,
  certificate: "",
  key: "",
  insecure: false,
  ...changes,
});

const utf8 = (text: string) => ({ bytes: [...Buffer.from(text)] });

/** Connects, and if that worked sends and receives a text. */
async function exchange(to: StepServer): Promise<TlsFailure | string> {
  const steps: Step[] = [
    ["tlsConnect", to, LIMIT],
    ["tlsSend", utf8("sent"), LIMIT],
    ["tlsReceive", { size: 100 }, LIMIT],
    ["tlsClose"],
  ];
  const [connected, , received] = await host.run(steps, { isLasting: true });
  if (connected?.returned !== undefined) return connected.returned as TlsFailure;
  return Buffer.from(received?.filled[0]?.slice(0, Number(received.returned)) ?? []).toString();
}

describe("trust", () => {
  it.each<[string, TlsOptions]>([
    ["TLS 1.2", { maxVersion: "TLSv1.2" }],
    ["TLS 1.3", { minVersion: "TLSv1.3" }],
    ["AES-256-GCM over TLS 1.2", { maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES256-GCM-SHA384" }],
    ["ChaCha20", { minVersion: "TLSv1.3", ciphers: "TLS_CHACHA20_POLY1305_SHA256" }],
    ["curve P-384", { ecdhCurve: "secp384r1" }],
  ])("speaks %s", async (_, options) => {
    expect(await exchange(server(await serve(options)))).toBe("sent");
  });

  it("speaks with a server on IPv6, whose certificate is for its address", async () => {
    expect(await exchange(server(await serve({}, echo, "::1"), { address: "::1", name: "::1" }))).toBe("sent");
    expect(await exchange(server(await serve({}, echo, "::1"), { address: "::1", name: "0:0::0:1" }))).toBe("sent");
  });

  it.each(["api.example", "API.example", "one.wild.example"])("takes a certificate for the name %s", async (name) => {
    expect(await exchange(server(await serve(), { name }))).toBe("sent");
  });

  it("asks for a name, and never for an address", async () => {
    const asked: unknown[] = [];
    const port = await serve({}, (socket) => {
      asked.push((socket as TLSSocket & { servername: unknown }).servername);
      echo(socket);
    });
    for (const name of ["api.example", "127.0.0.1", "::1"]) expect(await exchange(server(port, { name }))).toBe("sent");
    expect(asked).toEqual(["api.example", false, false]);
  });

  it("takes keys of RSA, and chains in any order", async () => {
    const trusted = certificate({ isCa: true, key: "rsa" });
    const intermediate = certificate({ isCa: true, issuer: trusted, key: "rsa" });
    const other = certificate({ isCa: true });
    const leaf = certificate({ issuer: intermediate, names: [ip("127.0.0.1")], key: "rsa" });
    const chain = { cert: leaf.cert + other.cert + intermediate.cert, key: leaf.key };
    expect(await exchange(server(await serve(chain), { ca: trusted.cert }))).toBe("sent");
    expect(await exchange(server(await serve(chain), { ca: other.cert + trusted.cert }))).toBe("sent");
    expect(await exchange(server(await serve(leaf), { ca: intermediate.cert }))).toBe("sent");
    expect(await exchange(server(await serve(leaf), { ca: trusted.cert }))).toMatchObject({ step: "verify" });
  });

  it("takes a certificate that is its own authority", async () => {
    const own = certificate({ isCa: true, names: [ip("127.0.0.1")] });
    expect(await exchange(server(await serve(own), { ca: own.cert }))).toBe("sent");
  });

  it("takes an empty subject, and no authority that has one", async () => {
    const leaf = certificate({ issuer: authority, cn: "", names: [ip("127.0.0.1")] });
    const unnamed = certificate({ isCa: true, cn: "" });
    expect(await exchange(server(await serve(leaf)))).toBe("sent");
    // So the library never compares two names without a first part, which have null pointers.
    expect(await exchange(server(await serve(leaf), { ca: unnamed.cert }))).toMatchObject({ step: "ca" });
  });

  it("uses the readable ones of several authorities", async () => {
    const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    expect(await exchange(server(await serve(), { ca: `${broken}${authority.cert}` }))).toBe("sent");
  });

  const NAME_MISMATCH = /does not match/;
  it.each<[string, CertificateOptions, Partial<StepServer>, RegExp]>([
    ["for another address", { names: [ip("127.0.0.2")] }, {}, NAME_MISMATCH],
    ["for another address of IPv6", { names: [ip("::2"), ip("127.0.0.1")] }, { name: "::1" }, NAME_MISMATCH],
    ["for another name", { names: [dns("other.example")] }, { name: "api.example" }, NAME_MISMATCH],
    ["for a name, of a server known by its address", { names: [dns("api.example")] }, {}, NAME_MISMATCH],
    ["for a name that reads like the address", { names: [dns("127.0.0.1")] }, {}, NAME_MISMATCH],
    ["for a name that reads like the address of IPv6", { names: [dns("::1")] }, { name: "::1" }, NAME_MISMATCH],
    ["for a wildcard that spans two labels", { names: [dns("*.example")] }, { name: "a.b.example" }, NAME_MISMATCH],
    ["whose common name alone is right", { cn: "api.example" }, { name: "api.example" }, NAME_MISMATCH],
    ["whose common name alone is the address", { cn: "127.0.0.1" }, {}, NAME_MISMATCH],
    ["that expired", { names: [ip("127.0.0.1")], to: new Date(Date.now() - 1000) }, {}, /expired/],
    ["that is not valid yet", { names: [ip("127.0.0.1")], from: new Date(Date.now() + DAY / 2) }, {}, /future/],
    ["signed by SHA-1", { names: [ip("127.0.0.1")], hash: "sha1" }, {}, /unacceptable hash/],
  ])("refuses a certificate %s", async (_, options, changes, text) => {
    const pair = certificate({ ...options, issuer: authority });
    const failure = await exchange(server(await serve({ ...pair, ciphers: "DEFAULT@SECLEVEL=0" }), changes));
    expect(failure).toEqual({ step: "verify", error: 0, text: expect.stringMatching(text) });
  });

  it("reports all problems of a certificate", async () => {
    const pair = certificate({ names: [dns("other")], to: new Date(Date.now() - 1000) });
    expect(await exchange(server(await serve(pair)))).toMatchObject({
      step: "verify",
      text: expect.stringMatching(/expired.*does not match.*not correctly signed by the trusted CA/),
    });
  });

  it("refuses another authority, one with the same name, and trusts none if none is given", async () => {
    const port = await serve();
    const untrusted = { step: "verify", error: 0, text: expect.stringContaining("trusted CA") };
    expect(await exchange(server(port, { ca: certificate({ isCa: true }).cert }))).toEqual(untrusted);
    const named = { isCa: true, cn: "the same" };
    const [first, second] = [certificate(named), certificate(named)];
    const leaf = certificate({ issuer: first, names: [ip("127.0.0.1")] });
    expect(await exchange(server(await serve(leaf), { ca: second.cert }))).toEqual(untrusted);
    expect(await exchange(server(await serve(leaf), { ca: second.cert + first.cert }))).toBe("sent");
    expect(await exchange(server(port, { ca: "" }))).toEqual(untrusted);
  });

  it("tries some of the paths that many certificates of one name make, and no more", async () => {
    const named = { isCa: true, cn: "the same" };
    const many = Array.from({ length: 20 }, () => certificate(named));
    const leaf = certificate({ issuer: many[0]!, names: [ip("127.0.0.1")] });
    // The library follows the first of that name, whose own issuer is not there.
    const first = certificate({ ...named, issuer: certificate({ isCa: true, cn: "absent" }) });
    const cert = [leaf, first, ...many].map((each) => each.cert).join("");
    expect(await exchange(server(await serve({ cert, key: leaf.key })))).toMatchObject({ step: "verify" });
  });

  it("refuses an issuer that is not an authority", async () => {
    const intermediate = certificate({ issuer: authority });
    const leaf = certificate({ issuer: intermediate, names: [ip("127.0.0.1")] });
    const chain = { cert: leaf.cert + intermediate.cert, key: leaf.key };
    expect(await exchange(server(await serve(chain)))).toMatchObject({ step: "verify" });
  });

  it("does not verify if so configured", async () => {
    const expired = certificate({ names: [dns("other")], to: new Date(Date.now() - 1000) });
    for (const options of [{ maxVersion: "TLSv1.2" }, { minVersion: "TLSv1.3" }] as const)
      expect(await exchange(server(await serve({ ...expired, ...options }), { insecure: true, ca: "" }))).toBe("sent");
  });

  it.each(["no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])(
    "says that an authority cannot be read: %j",
    async (ca) => {
      const failure = { step: "ca", error: 0, text: expect.stringMatching(/./) };
      expect(await exchange(server(await serve(), { ca }))).toEqual(failure);
    },
  );
});

describe("client certificates", () => {
  const versions = [{ maxVersion: "TLSv1.2" }, { minVersion: "TLSv1.3" }] as const;

  it.each(versions)("are shown, with %j", async (version) => {
    const rsa = certificate({ isCa: true, key: "rsa" });
    const options = { ...version, requestCert: true, rejectUnauthorized: true, ca: [authority.cert, rsa.cert] };
    const port = await serve(options, (socket) => socket.end(socket.getPeerCertificate().fingerprint256));
    for (const pair of [client, certificate({ issuer: rsa, key: "rsa" })]) {
      const shown = await exchange(server(port, { certificate: pair.cert, key: pair.key }));
      expect(shown).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/);
    }
  });

  it("are missed: the handshake fails, or with TLS 1.3 what follows it", async () => {
    const [before, after] = versions;
    const options = { requestCert: true, rejectUnauthorized: true, ca: authority.cert };
    expect(await exchange(server(await serve({ ...options, ...before })))).toMatchObject({ step: "handshake" });
    const [connected, , received] = await host.returned(
      ["tlsConnect", server(await serve({ ...options, ...after })), LIMIT],
      ["tlsSend", utf8("sent"), LIMIT],
      ["tlsReceive", { size: 10 }, LIMIT],
    );
    expect(connected).toBeUndefined();
    expect(received).toBeLessThan(0);
  });

  it.each<[string, () => Promise<Partial<StepServer>>]>([
    ["no PEM", async () => ({ certificate: "x", key: client.key })],
    ["no key", async () => ({ certificate: client.cert })],
    ["a key that is none", async () => ({ certificate: client.cert, key: "x" })],
    ["the key of another", async () => ({ certificate: client.cert, key: good.key })],
    [
      "a key of Ed25519",
      async () => {
        const encoding = { privateKeyEncoding: { type: "pkcs8", format: "pem" } } as const;
        const { privateKey } = generateKeyPairSync("ed25519", {
          ...encoding,
          publicKeyEncoding: { type: "spki", format: "pem" },
        });
        return { certificate: client.cert, key: privateKey };
      },
    ],
  ])("are refused if they cannot be used: %s", async (_, changes) => {
    const failure = { step: "certificate", error: 0, text: expect.stringMatching(/./) };
    expect(await exchange(server(await serve(), await changes()))).toEqual(failure);
  });
});

describe("a connection", () => {
  it("is refused", async () => {
    const closed = createTcpServer();
    const port = await listen(closed);
    closed.close();
    await once(closed, "close");
    expect(await exchange(server(port))).toEqual({ step: "connect", error: -ECONNREFUSED, text: "" });
  });

  it("needs a name without NUL", async () => {
    const failure = await exchange(server(await serve(), { name: "api.example\0.evil" }));
    expect(failure).toEqual({ step: "connect", error: -EINVAL, text: "" });
  });

  const closing: readonly [string, (socket: Socket) => void][] = [
    ["at once", (socket) => socket.end()],
    ["after the client's greeting", (socket) => socket.once("data", () => socket.end())],
    ["in the middle of its answer", (socket) => socket.once("data", () => socket.end(Buffer.from("160303", "hex")))],
    ["by a reset", (socket) => socket.once("data", () => socket.resetAndDestroy())],
  ];
  it.each(closing)("that the server closes %s fails in the handshake", async (_, serveClient) => {
    const failure = await exchange(server(await serveTcp(serveClient)));
    expect(failure).toEqual({ step: "handshake", error: -ECONNRESET, text: "" });
  });

  it("to a server without TLS fails in the handshake", async () => {
    const port = await serveTcp((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    expect(await exchange(server(port))).toEqual({ step: "handshake", error: 0, text: expect.stringMatching(/SSL/) });
  });

  it("names the alert by which a server refuses", async () => {
    const port = await serveTcp((socket) =>
      socket.once("data", () => socket.end(Buffer.from("15030300020228", "hex"))),
    );
    const failure = { step: "handshake", error: 0, text: expect.stringContaining("(alert 40)") };
    expect(await exchange(server(port))).toEqual(failure);
  });

  it("is over when the time is, in the handshake", async () => {
    const port = await serveTcp(() => {});
    const [failure] = await host.returned(["tlsConnect", server(port), 200]);
    expect(failure).toEqual({ step: "handshake", error: -ETIMEDOUT, text: "" });
  });

  it("is over when the time is, though something drips in", async () => {
    const drips: NodeJS.Timeout[] = [];
    const port = await serveTcp((socket) => {
      socket.write(Buffer.from("1603034000", "hex"));
      drips.push(setInterval(() => socket.write("x"), 20));
    });
    const [failure] = await host.returned(["tlsConnect", server(port), 300]);
    for (const drip of drips) clearInterval(drip);
    expect(failure).toEqual({ step: "handshake", error: -ETIMEDOUT, text: "" });
  });

  it("is over when the time is, though what says nothing never ends", async () => {
    // A warning, which TLS ignores: user_canceled.
    const warnings = Buffer.from("1503030002015a".repeat(10_000), "hex");
    const port = await serveTcp((socket) => {
      const flood = () => {
        while (!socket.destroyed && socket.write(warnings));
      };
      socket.on("drain", flood);
      flood();
    });
    const [failure] = await host.returned(["tlsConnect", server(port), 300]);
    expect(failure).toEqual({ step: "handshake", error: -ETIMEDOUT, text: "" });
  });

  it("goes to an IPv4-mapped address, whose certificate is for the IPv4 address", async () => {
    const to = { address: "::ffff:127.0.0.1", name: "::ffff:127.0.0.1" };
    expect(await exchange(server(await serve(), to))).toBe("sent");
    expect(await exchange(server(await serve(), { ...to, name: "::ffff:127.0.0.2" }))).toMatchObject({
      step: "verify",
    });
  });

  suite("to an address that does not answer", namespacesMissing(), () => {
    it("is over when the time is, before it is there", async () => {
      const setup = "ip link set lo up && ip route add 192.0.2.0/24 dev lo";
      const to = server(443, { address: "192.0.2.2" });
      const within = ["unshare", "--user", "--map-root-user", "--net"];
      const [failure] = await host.run([["tlsConnect", to, 200]], { before: setup, within, isLasting: true });
      expect(failure?.returned).toEqual({ step: "connect", error: -ETIMEDOUT, text: "" });
    });
  });

  it.each([
    ["by a notice", (socket: TLSSocket) => socket.end("last"), 0],
    ["without a notice", (socket: TLSSocket) => socket.write("last", () => tcpOf(socket).end()), 0],
  ])("gives all that came before the server closed it %s", async (_, serveClient, end) => {
    const port = await serve({}, (socket) => {
      socket.on("error", () => {});
      serveClient(socket);
    });
    const [, received, closed] = await host.returned(
      ["tlsConnect", server(port), LIMIT],
      ["tlsReceive", { size: 10 }, LIMIT],
      ["tlsReceive", { size: 10 }, LIMIT],
    );
    expect([received, closed]).toEqual([4, end]);
  });

  it("says that it was reset", async () => {
    const port = await serve({}, (socket) => {
      socket.on("error", () => {});
      socket.once("data", () => tcpOf(socket).resetAndDestroy());
    });
    const [, , received] = await host.returned(
      ["tlsConnect", server(port), LIMIT],
      ["tlsSend", utf8("x"), LIMIT],
      ["tlsReceive", { size: 10 }, LIMIT],
    );
    expect(received).toBe(-ECONNRESET);
  });

  it("is broken by what was not encrypted", async () => {
    const port = await serve({}, (socket) => {
      socket.on("error", () => {});
      socket.once("data", () => tcpOf(socket).write(Buffer.from("1703030020".concat("00".repeat(32)), "hex")));
    });
    const [, , received] = await host.returned(
      ["tlsConnect", server(port), LIMIT],
      ["tlsSend", utf8("x"), LIMIT],
      ["tlsReceive", { size: 10 }, LIMIT],
    );
    expect(received).toBe(-constants.errno.EPROTO);
  });

  it("waits no longer than the limit to receive and to send", async () => {
    const port = await serve({}, (socket) => {
      socket.on("error", () => {});
      socket.pause();
    });
    const made = await host.returned(
      ["tlsConnect", server(port), LIMIT],
      ["tlsReceive", { size: 10 }, 100],
      ["tlsReceive", { size: 10 }, 0],
    );
    expect(made.slice(1)).toEqual([-ETIMEDOUT, -ETIMEDOUT]);
    const silent = await serve({}, (socket) => {
      socket.on("error", () => {});
      tcpOf(socket).pause();
      tcpOf(socket)._handle?.readStop();
    });
    const [, sent] = await host.returned(["tlsConnect", server(silent), LIMIT], ["sendAll", 2 ** 26, 100]);
    expect(sent).toMatchObject({ end: -ETIMEDOUT });
  });

  it("moves a mebibyte in each direction", async () => {
    const size = 2 ** 20;
    const port = await serve({}, (socket) => {
      let left = size;
      socket.on("error", () => {});
      socket.on("data", (data) => {
        left -= data.length;
        if (left === 0) socket.end(Buffer.alloc(size, 7));
      });
    });
    const [, sent, received] = await host.returned(
      ["tlsConnect", server(port), LIMIT],
      ["sendAll", size, LIMIT],
      ["receiveAll", LIMIT],
    );
    expect([sent, received]).toEqual([
      { sent: size, end: 0 },
      { received: size, end: 0 },
    ]);
  });

  it("is detected as broken if the server has vanished", async () => {
    const port = await serve({}, (socket) => {
      socket.on("error", () => {});
      socket.once("data", () => tcpOf(socket).resetAndDestroy());
    });
    const made = await host.returned(
      ["tlsConnect", server(port), LIMIT],
      ["tlsSend", utf8("x"), LIMIT],
      ["poll", -1, 0, 300],
      ["tlsSend", utf8("x"), LIMIT],
      ["tlsSend", utf8("x"), LIMIT],
    );
    expect(made.at(-1)).toBeLessThan(0);
  });
});

/** The connection below TLS. */
function tcpOf(socket: TLSSocket): Socket & { _handle?: { readStop(): void } } {
  return (socket as unknown as { _parent: Socket })._parent;
}
