/** The C host's TLS, against real servers: what is trusted, and how a connection ends. */
import { once } from "node:events";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { constants } from "node:os";
import { createServer, type TLSSocket, type TlsOptions } from "node:tls";
import type { TlsFailure } from "../../host/port";
import { certificate, type Issued, authority as issueAuthority } from "../../system/certificates.testing";
import { HostProgram, type Step, type StepServer } from "../support/host";
import { namespacesMissing } from "../support/netns";
import { suite } from "../support/requirements";

jest.setTimeout(600_000);

const { ETIMEDOUT } = constants.errno;
const LIMIT = 30_000;

let host: HostProgram;
let authority: Issued;
let good: Issued;
const open: (Server | Socket)[] = [];

beforeAll(async () => {
  host = await HostProgram.build();
  authority = issueAuthority("test authority");
  const names = ["127.0.0.1", "::1", "api.example", "*.wild.example"];
  good = certificate({ subject: "api", by: authority, names });
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
  it.each(["api.example", "API.example", "one.wild.example"])("takes a certificate for the name %s", async (name) => {
    expect(await exchange(server(await serve(), { name }))).toBe("sent");
  });

  it.each(["api.test", "wild.example", "a.one.wild.example", "127.0.0.2", "::2"])(
    "takes none for the name %s",
    async (name) => {
      const failure = { step: "verify", text: expect.stringContaining("does not match") };
      expect(await exchange(server(await serve(), { name }))).toMatchObject(failure);
    },
  );

  it("asks for a name, and never for an address", async () => {
    const asked: unknown[] = [];
    const port = await serve({}, (socket) => {
      asked.push((socket as TLSSocket & { servername: unknown }).servername);
      echo(socket);
    });
    for (const name of ["api.example", "127.0.0.1", "::1"]) expect(await exchange(server(port, { name }))).toBe("sent");
    expect(asked).toEqual(["api.example", false, false]);
  });

  it("takes an empty subject, and no authority that has one", async () => {
    const leaf = certificate({ subject: "", by: authority, names: ["127.0.0.1"] });
    const unnamed = issueAuthority("");
    expect(await exchange(server(await serve(leaf)))).toBe("sent");
    // So the library never compares two names without a first part, which have null pointers.
    expect(await exchange(server(await serve(leaf), { ca: unnamed.cert }))).toMatchObject({ step: "ca" });
  });

  it("tries some of the paths that many certificates of one name make, and no more", async () => {
    const many = Array.from({ length: 20 }, () => issueAuthority("the same"));
    const leaf = certificate({ subject: "api", by: many[0]!, names: ["127.0.0.1"] });
    // The library follows the first of that name, whose own issuer is not there.
    const first = issueAuthority("the same", { by: issueAuthority("absent") });
    const cert = [leaf, first, ...many].map((each) => each.cert).join("");
    expect(await exchange(server(await serve({ cert, key: leaf.key })))).toMatchObject({ step: "verify" });
  });
});

describe("a connection", () => {
  it("is over when the time is, though something drips in", async () => {
    const drips: NodeJS.Timeout[] = [];
    const port = await serveTcp((socket) => {
      socket.write(Buffer.from("1603034000", "hex"));
      drips.push(setInterval(() => socket.write("x"), 20));
    });
    const [failure] = await host.returned(["tlsConnect", server(port), 2000]);
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
    const [failure] = await host.returned(["tlsConnect", server(port), 2000]);
    expect(failure).toEqual({ step: "handshake", error: -ETIMEDOUT, text: "" });
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
});

/** The connection below TLS. */
function tcpOf(socket: TLSSocket): Socket & { _handle?: { readStop(): void } } {
  return (socket as unknown as { _parent: Socket })._parent;
}
