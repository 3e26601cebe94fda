/** Connections and keys of the engine, on the real executable against Node's TLS, and the other way about. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket, connect as tcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { type ConnectionOptions, connect, createServer, type TLSSocket, type TlsOptions } from "node:tls";
import { buildExecutable } from "../../build/engine";
import { root } from "../../build/paths";
import { PRODUCT } from "../../build/programs";
import { authority, certificate, type Issued } from "../../system/certificates.testing";
import { readPair } from "../../system/crypto";
import { eventually } from "../../system/eventually.testing";
import { sanitized } from "../support/host";
import { namespacesMissing } from "../support/netns";
import { suite } from "../support/requirements";

jest.setTimeout(600_000);

let directory: string;
let executable: string;
let ca: Issued;
let ec: Issued;
let rsa: Issued;
const ends: (() => void)[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "engine-net-"));
  executable = join(directory, "programs");
  const program = join(root, "test", "support", "programs", "net.ts");
  const steps = join(root, "test", "support", "host-steps", "main.ts");
  await buildExecutable(executable, { main: steps, programs: { net: program }, scripts: PRODUCT.scripts, sanitized });
  ca = authority("test authority");
  const names = ["127.0.0.1", "api.example"];
  ec = certificate({ subject: "ec", by: ca, names });
  rsa = certificate({ subject: "rsa", by: ca, names, key: "rsa" });
});
afterEach(() => {
  for (const end of ends.splice(0)) end();
});
afterAll(() => rm(directory, { recursive: true }));

interface Running {
  readonly child: ChildProcess;
  /** The next line it prints. */
  line(): Promise<unknown>;
  tell(order: unknown): Promise<unknown>;
}

/** Starts a program; what it writes to stderr fails the test. */
function start(args: readonly string[], before = ":"): Running {
  const child = spawn("/bin/sh", ["-c", `${before}; exec "$0" net "$@"`, executable, ...args], { env: {} });
  let problems = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    problems += text;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  ends.push(() => child.kill());
  const line = async () => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error(`the program ended: ${problems}`);
    return JSON.parse(value);
  };
  const tell = (order: unknown) => {
    child.stdin.write(`${JSON.stringify(order)}\n`);
    return line();
  };
  return { child, line, tell };
}

async function serving(pair: Issued | null = ec, before?: string) {
  const server = start(["serve", JSON.stringify({ host: "127.0.0.1", port: 0 }), JSON.stringify(pair)], before);
  const { port } = (await server.line()) as { port: number };
  return { ...server, port };
}

const connected = async (order: object) => (await start(["connect", JSON.stringify(order)]).line()) as unknown[];

async function listen(server: Server): Promise<number> {
  server.on("connection", (socket: Socket) => {
    socket.on("error", () => {});
    ends.push(() => socket.destroy());
  });
  ends.push(() => server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

const echo = (socket: TLSSocket) => {
  socket.on("error", () => {});
  socket.pipe(socket);
};

function nodeServer(options: TlsOptions, taken: (socket: TLSSocket) => void = echo): Promise<number> {
  const server = createServer(options, taken);
  server.on("tlsClientError", () => {});
  return listen(server);
}

const target = (port: number, changes: object = {}) => ({ host: "127.0.0.1", port, ca: ca.cert, ...changes });

/** Connects as Node does; what the server showed and echoed. */
async function client(port: number, options: ConnectionOptions = {}, size = 100): Promise<TLSSocket> {
  const socket = connect({ port, host: "127.0.0.1", ca: ca.cert, ...options });
  ends.push(() => socket.destroy());
  await once(socket, "secureConnect");
  await echoed(socket, size);
  return socket;
}

async function echoed(socket: TLSSocket, size: number): Promise<void> {
  const sent = Buffer.alloc(size, "a payload ");
  const parts: Buffer[] = [];
  let left = size;
  socket.write(sent);
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.on("data", (bytes: Buffer) => {
      parts.push(bytes);
      left -= bytes.length;
      if (left <= 0) resolve();
    });
  });
  socket.removeAllListeners("data");
  expect(Buffer.concat(parts).equals(sent)).toBe(true);
}

const versions = [
  ["TLS 1.2", { maxVersion: "TLSv1.2" }],
  ["TLS 1.3", { minVersion: "TLSv1.3" }],
] as const;
const keys = [
  ["P-256", () => ec],
  ["RSA", () => rsa],
] as const;
const kinds = versions.flatMap(([version, options]) =>
  keys.map(([key, pair]) => [version, key, options, pair] as const),
);

describe("a client", () => {
  it.each(kinds)("speaks %s with a server whose key is %s, 50 times at once", async (_version, _key, options, pair) => {
    const port = await nodeServer({ ...pair(), ...options });
    expect(await connected({ target: target(port), count: 50 })).toEqual(Array(50).fill("same"));
  });

  it("moves four mebibytes while it writes and reads", async () => {
    const port = await nodeServer(ec);
    expect(await connected({ target: target(port), size: 4 * 2 ** 20, count: 3 })).toEqual(Array(3).fill("same"));
    const plain = await listen(createTcpServer((socket) => socket.pipe(socket)));
    expect(await connected({ target: target(plain), plain: true, size: 4 * 2 ** 20 })).toEqual(["same"]);
  });

  it("reports why a server is not trusted", async () => {
    const other = authority("other");
    const port = await nodeServer(ec);
    const untrusted = { kind: "verify", message: expect.stringContaining("its certificate is not trusted: ") };
    expect(await connected({ target: target(port, { ca: other.cert }) })).toEqual([untrusted]);
    const strict = authority("strict", { constraints: { excluded: ["example"] } });
    const inside = certificate({ subject: "x", by: strict, names: ["127.0.0.1", "api.example"] });
    expect(await connected({ target: target(await nodeServer(inside), { ca: strict.cert }) })).toEqual([
      { kind: "verify", message: expect.stringContaining("a name constraint excludes it") },
    ]);
  });

  it("reports what it cannot read", async () => {
    const port = await nodeServer(ec);
    expect(await connected({ target: target(port, { ca: "no PEM" }) })).toEqual([
      { kind: "ca", message: expect.stringContaining("certificate authority cannot be read") },
    ]);
  });

  it.each<[string, (socket: Socket) => void, object]>([
    ["closes at once", (socket) => socket.end(), { kind: "handshake", code: "ECONNRESET" }],
    [
      "resets the connection",
      (socket) => socket.once("data", () => socket.resetAndDestroy()),
      { kind: "handshake", code: "ECONNRESET" },
    ],
    ["answers what is not TLS", (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"), { kind: "handshake" }],
    ["sends half of its answer", (socket) => socket.write(Buffer.from("16030300", "hex")), { code: "ETIMEDOUT" }],
  ])("fails if the server %s, while others continue", async (_, serve, expected) => {
    const bad = await listen(createTcpServer(serve));
    const [failed] = await connected({ target: target(bad), deadlineMs: 1000 });
    expect(failed).toMatchObject(expected);
  });

  it("reports a closed port, an unknown host, and a cancelled attempt", async () => {
    const closed = createTcpServer();
    const port = await listen(closed);
    closed.close();
    for (const plain of [true, false])
      expect(await connected({ target: target(port), plain })).toEqual([
        { kind: "connect", code: "ECONNREFUSED", message: "connection refused" },
      ]);
    expect(await connected({ target: target(port, { host: "host.invalid" }) })).toEqual([
      { kind: "resolve", message: expect.stringContaining("its host name cannot be resolved: host.invalid") },
    ]);
    const silent = await listen(createTcpServer(() => {}));
    expect(await connected({ target: target(silent), abortMs: 50 })).toEqual([
      { kind: "closed", message: "the connection is no longer wanted" },
    ]);
    expect(await connected({ target: target(silent), deadlineMs: 50 })).toEqual([
      { kind: "handshake", code: "ETIMEDOUT", message: "no connection within 50 ms" },
    ]);
  });

  suite("with a name server", namespacesMissing(), () => {
    /** Connects in namespaces with this name server. */
    const resolved = async (server: string, host: string, deadlineMs: number, setup: string) => {
      const resolver = join(directory, "resolv.conf");
      await writeFile(resolver, `nameserver ${server}\n`);
      const mounts = `ip link set lo up && mount --bind ${resolver} /etc/resolv.conf && ${setup}`;
      const within = "unshare --user --map-root-user --net --mount --pid --fork --kill-child";
      const before = `PATH=${process.env["PATH"]}; exec ${within} /bin/sh -c '${mounts}; exec "$0" net "$@"' "$0" "$@"`;
      const order = { target: { host, port: 9 }, plain: true, deadlineMs };
      return start(["connect", JSON.stringify(order)], before).line();
    };

    /** It answers about IPv4, and in its own way about IPv6. */
    const half = `
      const server = require("node:dgram").createSocket("udp4");
      server.on("message", (query, from) => {
        const end = query.indexOf(0, 12) + 5;
        const isV4 = query.readUInt16BE(end - 4) === 1;
        if (!isV4 && query.includes("dropped")) return;
        const head = Buffer.concat([query.subarray(0, 2), Buffer.from([0x81, isV4 ? 0x80 : 0x82, 0, 1, 0, isV4 ? 1 : 0, 0, 0, 0, 0])]);
        const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 9]);
        server.send(Buffer.concat([head, query.subarray(12, end), ...(isV4 ? [record] : [])]), from.port, from.address);
      });
      server.bind(53, "127.0.0.1", () => require("node:fs").writeFileSync(process.argv[2], ""));`;

    it.each(["servfail.example", "dropped.example"])("takes IPv4 addresses where IPv6 is %s", async (name) => {
      const [script = "", ready = ""] = ["half.js", `${name}.ready`].map((file) => join(directory, file));
      await writeFile(script, half);
      const serve = `${process.execPath} ${script} ${ready} <&- >&- 2>&- & until [ -e ${ready} ]; do sleep 0.05; done`;
      // 192.0.2.9 has no route there.
      expect(await resolved("127.0.0.1", name, 3000, serve)).toEqual([
        { kind: "connect", code: "ENETUNREACH", message: "no route to it" },
      ]);
    });

    it("gives up in time", async () => {
      const route = "ip route add 192.0.2.0/24 dev lo";
      expect(await resolved("192.0.2.2", "name.example", 300, route)).toEqual([
        { kind: "resolve", code: "ETIMEDOUT", message: "no connection within 300 ms" },
      ]);
    });
  });

  it("ends what waits when it is closed", async () => {
    const port = await nodeServer(ec);
    const closed = { kind: "closed", message: "the connection is closed" };
    expect(await start(["reading", JSON.stringify(target(port))]).line()).toEqual([closed, closed]);
  });

  it("reports a reset connection", async () => {
    const port = await nodeServer(ec, (socket) => {
      socket.on("error", () => {});
      socket.once("data", () => (socket as unknown as { _parent: Socket })._parent.resetAndDestroy());
    });
    expect(await connected({ target: target(port) })).toEqual([
      { kind: "closed", code: "ECONNRESET", message: "the connection broke: ECONNRESET" },
    ]);
  });
});

describe("a server", () => {
  it.each(kinds)("speaks %s with a key of %s, to 50 clients at once", async (_version, _key, options, pair) => {
    const server = await serving(pair());
    await Promise.all(Array.from({ length: 50 }, () => client(server.port, options)));
    expect(await server.tell("state")).toMatchObject({ open: 50 });
  });

  it("negotiates HTTP/1.1 on request", async () => {
    const { port } = await serving();
    const socket = await client(port, { ALPNProtocols: ["h2", "http/1.1"] });
    expect(socket.alpnProtocol).toBe("http/1.1");
    expect((await client(port)).alpnProtocol).toBe(false);
    await expect(client(port, { ALPNProtocols: ["h2"] })).rejects.toThrow(/no application protocol/);
  });

  it("refuses TLS older than 1.2, and ciphers without forward secrecy", async () => {
    const { port } = await serving(rsa);
    const old = { maxVersion: "TLSv1.1", minVersion: "TLSv1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
    await expect(client(port, old)).rejects.toThrow(/protocol version/);
    await expect(client(port, { maxVersion: "TLSv1.2", ciphers: "AES128-GCM-SHA256" })).rejects.toThrow(/handshake/);
  });

  it("serves others beside half-sent handshakes, garbage, resets, and readers that do not read", async () => {
    const { port, tell } = await serving(ec);
    const hello = Buffer.from("16030100c8010000c40303", "hex");
    const raw = async (play: (socket: Socket) => void) => {
      const socket = tcp(port, "127.0.0.1");
      socket.on("error", () => {});
      ends.push(() => socket.destroy());
      await once(socket, "connect");
      play(socket);
    };
    await Promise.all(
      Array.from({ length: 20 }, () => [
        raw((socket) => socket.write(hello)),
        raw(() => {}),
        raw((socket) => socket.write("GET / HTTP/1.1\r\n\r\n")),
        raw((socket) => socket.write(hello, () => socket.resetAndDestroy())),
      ]).flat(),
    );
    const deaf = await client(port);
    deaf.pause();
    deaf.write(Buffer.alloc(8 * 2 ** 20));
    await Promise.all(Array.from({ length: 20 }, () => client(port, {}, 300_000)));
    // The half-sent ones are for the server to close.
    await eventually(async () => ((await tell("state")) as { open: number }).open === 41 || undefined);
  });

  it("serves others while some never stop sending", async () => {
    for (const pair of [null, ec]) {
      const { port } = await serving(pair);
      const flood = (socket: Socket) => {
        ends.push(() => socket.destroy());
        socket.on("error", () => {});
        const chunk = Buffer.alloc(2 ** 20);
        const more = () => {
          while (!socket.destroyed && socket.write(chunk));
        };
        socket.on("drain", more).resume();
        more();
      };
      const open = async () => (pair === null ? tcp(port, "127.0.0.1") : client(port));
      for (let count = 0; count < 4; count++) flood(await open());
      await pause(300);
      const order = { target: target(port), plain: pair === null, count: 5 };
      expect(await connected(order)).toEqual(Array(5).fill("same"));
      for (const end of ends.splice(0)) end();
    }
  });

  it("shows another certificate from now on, and those that are open stay", async () => {
    const { port, tell } = await serving(ec);
    const first = await client(port);
    expect(await tell({ cert: rsa.cert, key: ec.key })).toEqual({ message: expect.stringMatching(/./) });
    expect((await client(port)).getPeerCertificate().subject.CN).toBe("ec");
    expect(await tell({ cert: rsa.cert, key: rsa.key })).toBe("done");
    expect((await client(port)).getPeerCertificate().subject.CN).toBe("rsa");
    await echoed(first, 100_000);
    for (let time = 0; time < 20; time++) expect(await tell(time % 2 === 0 ? ec : rsa)).toBe("done");
    await echoed(first, 1000);
  });

  it("waits for free descriptors, and then continues", async () => {
    const { port, tell, child } = await serving(ec, "ulimit -n 20");
    const open = await Promise.all(Array.from({ length: 10 }, () => client(port)));
    const more = Array.from({ length: 10 }, () => {
      const socket = tcp(port, "127.0.0.1");
      ends.push(() => socket.destroy());
      return socket;
    });
    await Promise.all(more.map((socket) => once(socket, "connect")));
    const ticks = async () => {
      const text = await readFile(`/proc/${child.pid}/stat`, "utf8");
      return Number(text.split(" ")[13]) + Number(text.split(" ")[14]);
    };
    const before = await ticks();
    await pause(1000);
    if (!sanitized) expect((await ticks()) - before).toBeLessThan(30);
    for (const socket of [...open, ...more]) socket.destroy();
    await client(port);
    expect(await tell("state")).toEqual(expect.anything());
  });

  it.each(["127.0.0.256", "127.0.0.01", "::1%lo"])("takes the invalid address %s for no other one", async (host) => {
    const { port } = await serving(null);
    const refused = { kind: "resolve", message: `"${host}" is not an IP address` };
    for (const plain of [true, false])
      expect(await connected({ target: target(port, { host }), plain })).toEqual([refused]);
    expect(await start(["listenFails", JSON.stringify({ host, port: 0 })]).line()).toEqual(refused);
  });

  it("accepts no connections once it is closed, and a port in use is an error", async () => {
    const { port, tell } = await serving(null);
    const at = JSON.stringify({ host: "127.0.0.1", port });
    const taken = { message: expect.stringContaining("EADDRINUSE") };
    expect(await start(["listenFails", at]).line()).toEqual(taken);
    expect(await start(["listenFails", at, JSON.stringify(ec)]).line()).toEqual(taken);
    const wrong = JSON.stringify({ cert: ec.cert, key: rsa.key });
    expect(await start(["listenFails", at, wrong]).line()).not.toEqual(taken);
    expect(await connected({ target: target(port), plain: true })).toEqual(["same"]);
    expect(await tell("close")).toBe("done");
    expect(await connected({ target: target(port), plain: true })).toEqual([
      expect.objectContaining({ code: "ECONNREFUSED" }),
    ]);
  });

  it("speaks with a client of the engine, and gives back what connections took", async () => {
    const { port, tell } = await serving();
    /** Resident memory in KiB, once the server has seen that every connection ended. */
    const resident = async (): Promise<number> => {
      const state = (await tell("state")) as { open: number; resident: number };
      if (state.open === 0) return state.resident;
      await pause(10);
      return resident();
    };
    // Memory grows while its parts find their sizes, and then no more; a leak of 256 bytes a connection never stops.
    const rounds: number[] = [];
    const growth = () => (rounds.at(-1) ?? 0) - (rounds.at(-11) ?? 0);
    while (rounds.length < 11 || (rounds.length < 60 && growth() >= 256)) {
      expect(await connected({ target: target(port), count: 100 })).toEqual(Array(100).fill("same"));
      rounds.push(await resident());
      if (sanitized) return; // its memory keeps what was freed, to find who uses it
    }
    if (growth() >= 256) throw new Error(`memory goes on growing: ${rounds.join(", ")} KiB`);
  });
});

describe("keys", () => {
  const calls = async (...list: readonly (readonly (string | readonly number[])[])[]) =>
    (await start(["crypto", JSON.stringify(list)]).line()) as unknown[];
  const bytes = [...Buffer.from("some bytes")];

  it("hashes, and makes random bytes and names", async () => {
    const [hash, random, other, name] = await calls(["sha256", bytes], ["randomUUID"], ["randomUUID"], ["randomUUID"]);
    expect(hash).toEqual([...createHash("sha256").update(Buffer.from(bytes)).digest()]);
    expect(random).not.toEqual(other);
    expect(name).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it("makes keys that Node reads", async () => {
    const [pem] = (await calls(["generateKey"])) as string[];
    const key = createPrivateKey(pem ?? "");
    expect(key.asymmetricKeyDetails).toEqual({ namedCurve: "prime256v1" });
    expect(key.export({ type: "pkcs8", format: "pem" })).toBe(pem);
    expect(verify("sha256", Buffer.from(bytes), createPublicKey(key), sign("sha256", Buffer.from(bytes), key))).toBe(
      true,
    );
  });

  const pairs = [
    ["P-256, SEC 1", () => generateKeyPairSync("ec", { namedCurve: "P-256" }), "sec1"],
    ["P-384, PKCS#8", () => generateKeyPairSync("ec", { namedCurve: "P-384" }), "pkcs8"],
    ["P-521, PKCS#8", () => generateKeyPairSync("ec", { namedCurve: "P-521" }), "pkcs8"],
    ["RSA, PKCS#8", () => generateKeyPairSync("rsa", { modulusLength: 2048 }), "pkcs8"],
    ["RSA, PKCS#1", () => generateKeyPairSync("rsa", { modulusLength: 4096 }), "pkcs1"],
  ] as const;

  it.each(pairs)("signs as Node verifies: %s", async (_, make, type) => {
    const { privateKey, publicKey } = make();
    const pem = privateKey.export({ type: type as "pkcs8", format: "pem" }).toString();
    const spki = [...publicKey.export({ type: "spki", format: "der" })];
    const [own, signature] = await calls(["publicKeyOf", pem], ["sign", pem, bytes]);
    expect(own).toEqual(spki);
    expect(verify("sha256", Buffer.from(bytes), publicKey, Buffer.from(signature as number[]))).toBe(true);
  });

  it("reads what a pair is valid for, and why it cannot be used", async () => {
    const days = (iso: string) => (Date.parse(iso) - Date.now()) / 86_400_000;
    const lasting = certificate({
      ...{ subject: "lasting", names: ["a.svc"] },
      ...{ fromDay: days("1951-02-03T04:05:06Z"), toDay: days("9999-12-31T23:59:59Z") },
    });
    const good: readonly (readonly [string, string, string])[] = [
      [ec.cert, ec.key, "localhost"],
      [`${ec.cert}${ca.cert}`, ec.key, "elsewhere"],
      [rsa.cert, createPrivateKey(rsa.key).export({ type: "pkcs1", format: "pem" }).toString(), "localhost"],
      [lasting.cert.replaceAll("\n", "\r\n"), lasting.key.trimEnd(), "a.svc"],
      [lasting.cert, createPrivateKey(lasting.key).export({ type: "sec1", format: "pem" }).toString(), "lasting"],
    ];
    const read = await calls(...good.map((pair) => ["readPair", ...pair]));
    expect(read).toEqual(good.map((pair) => readPair(...pair)));
    const passphrase = { cipher: "aes-256-cbc", passphrase: "secret" };
    const encrypted = createPrivateKey(ec.key)
      .export({ type: "pkcs8", format: "pem", ...passphrase })
      .toString();
    const failed = await calls(
      ["readPair", ec.cert, rsa.key, "localhost"],
      ["readPair", "", "", "localhost"],
      ["readPair", ec.cert, "no PEM", "localhost"],
      ["readPair", ec.key, ec.cert, "localhost"],
      ["readPair", ec.cert, ec.key.replace(/\n.{8}/, "\n"), "localhost"],
      ["readPair", ec.cert, encrypted, "localhost"],
      ["readPair", ec.cert.replace(/\n.{20}/, "\n!!!!"), ec.key, "localhost"],
      ["readPair", `${ec.cert}${ca.cert.slice(0, 200)}\n`, ec.key, "localhost"],
      ["publicKeyOf", "secret text"],
      ["sign", "secret text", bytes],
    );
    const quoted = ec.key.split("\n")[1]?.slice(8, 40) ?? "";
    for (const { error } of failed as { error: string }[]) {
      expect(error).toMatch(/./);
      expect(error).not.toMatch("secret");
      expect(error).not.toContain(quoted);
    }
  });
});
