import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { createServer, type Server } from "node:net";
import { connectTcp, type Listener, listenTcp } from "../net";
import { HttpClient, type HttpClientOptions, HttpTimeout, linesOf } from "./client";

let server: Server;
let client: HttpClient;
/** How many connections were made, and what was asked on all. */
let connections: number;
const sockets: Socket[] = [];
let asked: string[];

/** A server that answers as it is told. */
async function start(answer: (socket: Socket, count: number) => void, options: Partial<HttpClientOptions> = {}) {
  connections = 0;
  asked = [];
  server = createServer((socket) => {
    connections += 1;
    sockets.push(socket);
    const count = connections;
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      asked.push(String(chunk).split(" HTTP")[0] ?? "");
      answer(socket, count);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const target = { host: "127.0.0.1", port };
  client = new HttpClient({ authority: `127.0.0.1:${port}`, connect: (each) => connectTcp(target, each), ...options });
}

afterEach(() => {
  client.close();
  server.close();
  for (const socket of sockets.splice(0)) socket.destroy();
});

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const get = (path = "/") => client.request({ method: "GET", path }, 30_000);
const post = () => client.request({ method: "POST", path: "/", body: "é" }, 30_000);

test("a connection is kept for the next request", async () => {
  await start((socket) => socket.write(OK));
  for (let round = 0; round < 5; round++) expect(await get()).toEqual({ status: 200, body: "ok" });
  expect(connections).toBe(1);
});

test.each([
  ["says so", "HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 2\r\n\r\nok"],
  ["says more than it was asked", `${OK}HTTP/1.1 200 OK\r\n`],
  ["speaks HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"],
])("unless the server %s", async (_, text) => {
  await start((socket) => socket.write(text));
  await get();
  await get();
  expect(connections).toBe(2);
});

test("one that ends while it is kept is not used again", async () => {
  await start((socket) => socket.end(OK));
  await get();
  if (sockets[0]?.closed === false) await once(sockets[0], "close");
  expect(await post()).toEqual({ status: 200, body: "ok" });
  expect(connections).toBe(2);
});

/** Drops the first connection when the second request comes on it. */
const dropping = () => {
  let requests = 0;
  return (socket: Socket, count: number) => {
    requests += 1;
    if (count === 1 && requests > 1) socket.destroy();
    else socket.write(OK);
  };
};

test("a request that only reads is sent again if a kept connection ends before the answer, and no other", async () => {
  await start(dropping());
  await get();
  expect(await get("/again")).toEqual({ status: 200, body: "ok" });
  expect(asked).toEqual(["GET /", "GET /again", "GET /again"]);
  server.close();
  await start(dropping());
  await get();
  await expect(post()).rejects.toThrow();
  expect(asked).toEqual(["GET /", "POST /"]);
});

test("after a request without an answer, no kept connection is used again", async () => {
  const silent = new Set<Socket>();
  await start((socket) => {
    if (!silent.has(socket)) socket.write(OK);
  });
  await Promise.all([get("/one"), get("/other")]);
  for (const socket of sockets) silent.add(socket);
  await expect(client.request({ method: "GET", path: "/late" }, 50)).rejects.toThrow(HttpTimeout);
  await get("/next");
  expect([connections, asked.slice(2)]).toEqual([3, ["GET /late", "GET /next"]]);
});

test("who wants to know is told that a kept connection has ended", async () => {
  const ended = new Promise((resolve) => void start((socket) => socket.end(OK), { ended: resolve }).then(() => get()));
  expect(await ended).toBeUndefined();
});

test("nor one whose answer has begun, or on a new connection", async () => {
  await start((socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok"));
  await expect(get()).rejects.toThrow("closed the connection without a whole answer");
  expect(asked).toEqual(["GET /"]);
  server.close();
  await start((socket) => socket.destroy());
  await expect(get()).rejects.toThrow();
  expect(asked).toEqual(["GET /"]);
});

test("no more connections are made than allowed; requests wait for one, up to their deadline", async () => {
  const held: Socket[] = [];
  await start((socket) => void held.push(socket), { connections: 1 });
  const first = get("/first");
  while (held.length === 0) await new Promise(setImmediate);
  await expect(client.request({ method: "GET", path: "/late" }, 20)).rejects.toThrow(HttpTimeout);
  const second = get("/second");
  held[0]?.write(OK);
  await first;
  while (held.length < 2) await new Promise(setImmediate);
  held[1]?.write(OK);
  await second;
  expect([connections, asked]).toEqual([1, ["GET /first", "GET /second"]]);
});

test("an answer for which there is no room beside the others is given up, and room is there again", async () => {
  const held: Socket[] = [];
  await start((socket) => void held.push(socket), { answerBytes: 300 });
  const large = `HTTP/1.1 200 OK\r\ncontent-length: 200\r\n\r\n${"x".repeat(200)}`;
  const first = get("/first");
  while (held.length === 0) await new Promise(setImmediate);
  held[0]?.write(large.slice(0, -1));
  const second = get("/second");
  while (held.length < 2) await new Promise(setImmediate);
  held[1]?.write(large);
  await expect(second).rejects.toThrow("more than there is room for: 300 bytes");
  held[0]?.write("x");
  expect((await first).status).toBe(200);
  const third = get("/third");
  while (held.length < 3) await new Promise(setImmediate);
  held[2]?.write(large);
  expect((await third).status).toBe(200);
});

test("an answer that drips in ends with the deadline", async () => {
  await start((socket) => {
    const drip = setInterval(() => socket.write("H"), 5);
    socket.once("close", () => clearInterval(drip));
  });
  // Long enough for a busy machine to connect.
  await expect(client.request({ method: "GET", path: "/" }, 2_000)).rejects.toThrow("no answer within 2000 ms");
});

describe("a stream", () => {
  const limits = () => ({ connectMs: 30_000, idleMs: 30_000, signal: new AbortController().signal });
  const HEAD = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
  const chunk = (bytes: Buffer) =>
    Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);

  test("is read line by line, whatever arrives together", async () => {
    const text = Buffer.from("é€😀\n\nlast");
    await start((socket) => {
      socket.setNoDelay(true);
      socket.write(HEAD);
      for (const byte of text) socket.write(chunk(Buffer.of(byte)));
      socket.write("0\r\n\r\n");
    });
    const { status, parts } = await client.stream({ method: "GET", path: "/" }, limits());
    const told: string[] = [];
    for await (const line of linesOf(parts)) told.push(line);
    expect([status, told]).toEqual([200, ["é€😀", "", "last"]]);
  });

  test("is read only as fast as its lines are taken", async () => {
    let sent = 0;
    const line = chunk(Buffer.from(`${"x".repeat(65_535)}\n`));
    await start((socket) => {
      socket.write(HEAD);
      const more = () => {
        while (sent < 1000 && socket.write(line)) sent += 1;
        if (sent < 1000) socket.once("drain", more);
      };
      more();
    });
    const { parts } = await client.stream({ method: "GET", path: "/" }, limits());
    let taken = 0;
    for await (const _ of linesOf(parts)) {
      taken += 1;
      if (taken === 10) break;
    }
    // What the kernel's buffers take, and no more.
    expect(sent).toBeLessThan(500);
  });

  test("ends with its signal", async () => {
    await start((socket) => socket.write(`${HEAD}4\r\none\n\r\n`));
    const abort = new AbortController();
    const { parts } = await client.stream({ method: "GET", path: "/" }, { ...limits(), signal: abort.signal });
    const read = async () => {
      for await (const _ of linesOf(parts)) abort.abort();
    };
    await expect(read()).rejects.toThrow();
  });

  test("whose head does not come fails", async () => {
    await start(() => undefined);
    const stream = client.stream({ method: "GET", path: "/" }, { ...limits(), connectMs: 2_000 });
    await expect(stream).rejects.toThrow("no answer within 2000 ms");
  });

  test("that drips in ends with its deadline", async () => {
    await start((socket) => {
      socket.write(HEAD);
      const drip = setInterval(() => socket.write(chunk(Buffer.of(10))), 5);
      socket.once("close", () => clearInterval(drip));
    });
    const { parts } = await client.stream(
      { method: "GET", path: "/" },
      { connectMs: 30_000, deadlineMs: 200, signal: new AbortController().signal },
    );
    const read = async () => {
      for await (const _ of linesOf(parts));
    };
    await expect(read()).rejects.toThrow("no answer within 200 ms");
  });
});

test("an idle connection is closed", async () => {
  const taken: Promise<unknown>[] = [];
  const listener: Listener = await listenTcp({ host: "127.0.0.1", port: 0 }, (connection) => {
    taken.push(
      (async () => {
        await connection.read();
        await connection.write(Buffer.from(OK));
        return connection.read();
      })(),
    );
  });
  await start(() => undefined);
  const target = { host: "127.0.0.1", port: listener.port };
  const kept = new HttpClient({ authority: "x", connect: (each) => connectTcp(target, each), idleMs: 20 });
  await kept.request({ method: "GET", path: "/" }, 30_000);
  expect(await taken[0]).toBeUndefined();
  listener.close();
});
