import { certificate } from "../../../system/certificates.testing";
import { type Connection, connectTcp, connectTls, type Listener, listenTcp, listenTls } from "../../../system/net";
import { NetError } from "../../../system/net-error";
import { Crowd } from "../../support/crowd";

const HOST = "127.0.0.1";
const options = { deadlineMs: 30_000 };
const listeners: Listener[] = [];
const connections: Connection[] = [];

afterEach(() => {
  for (const listener of listeners.splice(0)) listener.close();
  for (const connection of connections.splice(0)) connection.close();
});

const pairFor = (address: string) => certificate({ subject: address, names: [address] });
const [right, wrong] = [pairFor(HOST), pairFor("192.0.2.1")];

/** Sends back what arrives, and ends with the client. */
function echo(connection: Connection): void {
  connections.push(connection);
  void (async () => {
    for (let bytes = await connection.read(); bytes !== undefined; bytes = await connection.read())
      await connection.write(bytes);
    connection.close();
  })().catch(() => connection.close());
}

async function listen(): Promise<number> {
  const listener = await listenTcp({ host: HOST, port: 0 }, echo);
  listeners.push(listener);
  return listener.port;
}

async function listenSecurely(handshakeMs = 30_000) {
  const listener = await listenTls({ host: HOST, port: 0 }, right, { handshakeMs }, echo);
  listeners.push(listener);
  return listener;
}

async function exchange(connection: Connection, size: number): Promise<number> {
  connections.push(connection);
  const sent = connection.write(new Uint8Array(size).fill(7));
  let received = 0;
  while (received < size) received += (await connection.read())?.length ?? Number.NaN;
  await sent;
  return received;
}

const kindOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => "connected",
    (error: NetError) => `${error.kind} ${error.code ?? ""}`.trim(),
  );

test("bytes go both ways, over TCP and TLS", async () => {
  const plain = await connectTcp({ host: HOST, port: await listen() }, options);
  expect(await exchange(plain, 3_000_000)).toBe(3_000_000);
  const { port } = await listenSecurely();
  const secure = await connectTls({ host: HOST, port, ca: right.cert }, options);
  expect(await exchange(secure, 3_000_000)).toBe(3_000_000);
});

test("a closed connection rejects a read and a write", async () => {
  const connection = await connectTcp({ host: HOST, port: await listen() }, options);
  const reading = kindOf(connection.read());
  connection.close();
  connection.close();
  expect(await reading).toBe("closed");
  expect(await kindOf(connection.read())).toBe("closed");
  expect(await kindOf(connection.write(new Uint8Array(1)))).toBe("closed");
});

test("the end of the other side is not an error", async () => {
  const listener = await listenTcp({ host: HOST, port: 0 }, (taken) => {
    void taken.write(Uint8Array.of(1)).then(() => taken.close());
  });
  listeners.push(listener);
  const connection = await connectTcp({ host: HOST, port: listener.port }, options);
  connections.push(connection);
  expect(await connection.read()).toEqual(Buffer.of(1));
  expect(await connection.read()).toBeUndefined();
});

test("a failure names its step", async () => {
  const { port } = await listenSecurely();
  const to = { host: HOST, port };
  expect(await kindOf(connectTls(to, options))).toMatch(/^verify /);
  expect(await kindOf(connectTls({ ...to, ca: wrong.cert }, options))).toMatch(/^verify /);
  expect(await kindOf(connectTls({ ...to, ca: right.cert, serverName: "other" }, options))).toMatch(/^verify /);
  expect(await kindOf(connectTls({ ...to, insecure: true, serverName: "other" }, options))).toBe("connected");
  expect(await kindOf(connectTls({ ...to, certificate: { cert: "x", key: "y" } }, options))).toMatch(/^certificate/);
  expect(await kindOf(connectTls({ host: HOST, port: await listen(), ca: right.cert }, options))).toMatch(/^handshake/);
  listeners.splice(0).forEach((each) => void each.close());
  for (const each of [connectTcp(to, options), connectTls(to, options)])
    expect(await kindOf(each)).toBe("connect ECONNREFUSED");
  expect(await kindOf(connectTcp({ host: "none.invalid", port: 1 }, options))).toMatch(/^resolve /);
});

test("an attempt ends with its deadline or its signal", async () => {
  const silent = await listenTcp({ host: HOST, port: 0 }, (connection) => void connections.push(connection));
  listeners.push(silent);
  const to = { host: HOST, port: silent.port };
  expect(await kindOf(connectTls(to, { deadlineMs: 50 }))).toBe("handshake ETIMEDOUT");
  const abort = new AbortController();
  const attempt = kindOf(connectTls(to, { ...options, signal: abort.signal }));
  abort.abort();
  expect(await attempt).toBe("closed");
  expect(await kindOf(connectTls(to, { ...options, signal: abort.signal }))).toBe("closed");
});

test("later connections get a new certificate, but not an unusable one", async () => {
  const listener = await listenSecurely();
  const to = { host: HOST, port: listener.port, ca: right.cert };
  const before = await connectTls(to, options);
  expect(() => listener.use({ cert: right.cert, key: wrong.key })).toThrow();
  expect(await kindOf(connectTls(to, options))).toBe("connected");
  listener.use(wrong);
  expect(await kindOf(connectTls(to, options))).toMatch(/^verify /);
  expect(await exchange(before, 10)).toBe(10);
});

test("unfinished handshakes are closed for new ones", async () => {
  const { port } = await listenSecurely();
  // Not all of them have room, and those that are thrown out come back.
  const crowd = new Crowd(port, "", { size: 2_100 });
  try {
    await crowd.grown(2_500);
    const connection = await connectTls({ host: HOST, port, ca: right.cert }, options);
    expect(await exchange(connection, 10)).toBe(10);
  } finally {
    crowd.leave();
  }
});

test("a port in use is refused", async () => {
  const listener = await listenTcp({ port: 0 }, echo);
  listeners.push(listener);
  await expect(listenTcp({ port: listener.port }, echo)).rejects.toThrow("EADDRINUSE");
  await expect(listenTls({ port: listener.port }, right, { handshakeMs: 1 }, echo)).rejects.toThrow("EADDRINUSE");
  expect(new NetError("x", "closed").name).toBe("NetError");
});
