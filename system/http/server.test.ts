import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type Listener, listenTcp } from "../net";
import { HttpServer, type HttpServerOptions } from "./server";

let server: HttpServer;
let listener: Listener;
const sockets: Socket[] = [];
let release: () => void = () => undefined;

async function start(changes: Partial<HttpServerOptions> = {}): Promise<void> {
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  server = new HttpServer({
    connections: 20,
    headBytes: 1024,
    idleMs: 60_000,
    answer: async ({ method, target, body }) => {
      if (target === "/held") await held;
      if (target === "/broken") throw new Error("broken");
      const reads = target === "/read" || target === "/hasten";
      const deadlineMs = target === "/hasten" ? 500 : 60_000;
      const sent = reads ? await body({ most: 10, deadlineMs }) : new Uint8Array(0);
      return { status: 200, body: `${method} ${target} ${new TextDecoder().decode(sent)}` };
    },
    ...changes,
  });
  listener = await listenTcp({ host: "127.0.0.1", port: 0 }, server.take);
}

afterEach(async () => {
  listener.close();
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.close(0);
});

async function client(): Promise<Socket> {
  const socket = connect(listener.port, "127.0.0.1");
  socket.on("error", () => undefined);
  sockets.push(socket);
  await once(socket, "connect");
  return socket;
}

/** Everything received until the connection ends. */
async function rest(socket: Socket): Promise<string> {
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk;
  });
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
  return text;
}

async function ask(...parts: readonly string[]): Promise<string> {
  const socket = await client();
  const all = rest(socket);
  for (const part of parts) {
    socket.write(part);
    await new Promise(setImmediate);
  }
  return all;
}

const status = (text: string) => text.split("\r\n")[0];
const LAST = "connection: close\r\n\r\n";

test("requests on one connection are answered in their order, cut wherever they are", async () => {
  await start();
  const requests = `GET /a HTTP/1.1\r\n\r\n\r\nPOST /read HTTP/1.1\r\ncontent-length: 3\r\n\r\nonePUT /read HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2;x\r\ntw\r\n1\r\no\r\n0\r\na: b\r\n\r\nHEAD /b HTTP/1.1\r\n${LAST}`;
  for (const parts of [[requests], [...requests]]) {
    const bodies = (await ask(...parts)).split(/HTTP\/1.1 200 OK\r\n/).map((each) => each.split("\r\n\r\n")[1]);
    expect(bodies.slice(1)).toEqual(["GET /a ", "POST /read one", "PUT /read two", ""]);
  }
});

test.each([
  ["hello\r\n\r\n", "400 Bad Request"],
  ["GET / HTTP/2.0\r\n\r\n", "400 Bad Request"],
  ["GET / HTTP/1.1\r\nno header\r\n\r\n", "400 Bad Request"],
  ["GET / HTTP/1.1\r\ncontent-length : 1\r\n\r\n", "400 Bad Request"],
  ["GET / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", "400 Bad Request"],
  ["GET / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", "400 Bad Request"],
  ["GET / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n", "400 Bad Request"],
  ["\0\xff\r\n\r\n", "400 Bad Request"],
  [`GET /${"a".repeat(2000)}`, "431 Request Header Fields Too Large"],
  ["POST /read HTTP/1.1\r\ncontent-length: 11\r\n\r\n", "413 Content Too Large"],
  ["POST /read HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nb\r\n01234567890\r\n", "413 Content Too Large"],
  ["POST /read HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n", "400 Bad Request"],
  ["POST /hasten HTTP/1.1\r\ncontent-length: 2\r\n\r\n1", "408 Request Timeout"],
  ["GET /broken HTTP/1.0\r\n\r\n", "500 Internal Server Error"],
])("%j is answered with %s, and the connection ends", async (request, wanted) => {
  await start();
  expect(status(await ask(request))).toBe(`HTTP/1.1 ${wanted}`);
});

test("a body that is not read ends the connection with the answer", async () => {
  await start();
  const text = await ask("POST /a HTTP/1.1\r\ncontent-length: 1000\r\n\r\nGET /b HTTP/1.1\r\n\r\n");
  expect(text.match(/HTTP\/1.1 /g)).toHaveLength(1);
  expect(text).toContain("connection: close\r\n");
});

test("a head that does not come to its end in time ends the connection", async () => {
  await start({ idleMs: 100 });
  expect(await Promise.all([ask(), ask("GET / HT")])).toEqual(["", ""]);
});

test("the connection that has waited longest makes room, and none whose request is under way does", async () => {
  await start({ connections: 2 });
  const held = await client();
  const answered = rest(held);
  held.write("GET /held HTTP/1.1\r\nconnection: close\r\n\r\n");
  const silent = await client();
  const gone = rest(silent);
  for (let round = 0; round < 50; round++) expect(await ask(`GET /a HTTP/1.1\r\n${LAST}`)).toContain("GET /a ");
  expect(await gone).toBe("");
  release();
  expect(await answered).toContain("GET /held ");
});

test("a body that does not come to its end makes room like a silent connection", async () => {
  await start({ connections: 4 });
  const slow = await Promise.all(Array.from({ length: 3 }, client));
  const gone = Promise.all(slow.map(rest));
  for (const socket of slow) socket.write("POST /read HTTP/1.1\r\ncontent-length: 2\r\n\r\na");
  // An answer on another connection comes after the server has read what was sent before.
  await ask(`GET /a HTTP/1.1\r\n${LAST}`);
  for (const socket of await Promise.all(Array.from({ length: 4 }, client))) socket.write("GET /a");
  expect(await gone).toEqual(["", "", ""]);
});

/** A client that has the beginning of an answer and does not read on. */
async function mute(): Promise<Socket> {
  const socket = await client();
  socket.write(`GET /large HTTP/1.1\r\n${LAST}`);
  await once(socket, "readable");
  return socket;
}

const LARGE = 32 * 1024 * 1024;
const large: Partial<HttpServerOptions> = {
  answer: async ({ target }) => ({ status: 200, body: target === "/large" ? "x".repeat(LARGE) : target }),
};

test("a client that does not read its answer makes room like a silent one", async () => {
  await start({ ...large, connections: 2 });
  const [first] = [await mute(), await mute()];
  for (let round = 0; round < 50; round++) expect(await ask(`GET /a HTTP/1.1\r\n${LAST}`)).toContain("/a");
  expect((await rest(first)).length).toBeLessThan(LARGE);
});

test("a server that is closed finishes the answer that a client still reads", async () => {
  await start(large);
  const reading = await mute();
  const closed = server.close(60_000);
  expect((await rest(reading)).length).toBeGreaterThan(LARGE);
  await closed;
});

test("the body that began first makes room for the bytes of others, and whole ones take none", async () => {
  await start({ bodyBytes: 13 });
  const begun: Socket[] = [];
  for (let each = 0; each < 3; each++) {
    const socket = await client();
    begun.push(socket);
    socket.write("POST /read HTTP/1.1\r\ncontent-length: 6\r\n\r\nxxxx");
    // An answer on another connection comes after the server has read what was sent before.
    await ask(`GET /a HTTP/1.1\r\n${LAST}`);
  }
  const [first, second] = begun as [Socket, Socket, Socket];
  const gone = rest(first);
  for (let round = 0; round < 10; round++)
    expect(await ask(`POST /read HTTP/1.1\r\ncontent-length: 2\r\n${LAST}ab`)).toContain("POST /read ab");
  expect(await gone).toBe("");
  second.write("yy");
  expect(String((await once(second, "data"))[0])).toContain("POST /read xxxxyy");
});

test("a server that is closed answers a request whose body is still to come", async () => {
  await start();
  const socket = await client();
  const answered = rest(socket);
  socket.write("POST /read HTTP/1.1\r\ncontent-length: 2\r\n\r\na");
  await ask(`GET /a HTTP/1.1\r\n${LAST}`);
  const closed = server.close(60_000);
  socket.write("b");
  expect(await answered).toContain("POST /read ab");
  await closed;
});

test("a server that is closed answers what it was asked, and ends what waits", async () => {
  await start();
  const [idle, busy] = [await client(), await client()];
  const [left, answered] = [rest(idle), rest(busy)];
  busy.write("GET /held HTTP/1.1\r\n\r\n");
  await ask(`GET /a HTTP/1.1\r\n${LAST}`);
  const closed = server.close(60_000);
  expect(await left).toBe("");
  release();
  expect(await answered).toContain("connection: close\r\n");
  await closed;
});

test("a client that resets its connection disturbs no other", async () => {
  await start();
  const socket = await client();
  socket.write("GET /held HTTP/1.1\r\n\r\n");
  socket.resetAndDestroy();
  expect(await ask(`GET /a HTTP/1.1\r\n${LAST}`)).toContain("GET /a ");
  release();
});
