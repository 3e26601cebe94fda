import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { certificate } from "../system/certificates.testing";
import { ApiUnreachable } from "./api-server";
import { ApiConnections, ApiTooLarge, httpsTransport } from "./transport";

let server: Server;
let cert = "";
/** Tokens of the requests in their order. */
const asked: (string | undefined)[] = [];
/** Connections that were encrypted. */
let handshakes = 0;
let answerSlow: () => void = () => undefined;

beforeEach(() => {
  asked.length = 0;
  handshakes = 0;
});

beforeAll(async () => {
  const made = certificate({ subject: "api", names: ["127.0.0.1"] });
  cert = made.cert;
  server = createServer({ cert, key: made.key }, (request, response) => {
    asked.push(request.headers.authorization);
    response.statusCode = request.headers.authorization === "Bearer revoked" ? 401 : 200;
    if (request.url === "/slow") answerSlow = () => response.end("slow");
    else response.end(request.url === "/large" ? "x".repeat(9 * 1024 * 1024) : "fast");
  });
  server.on("secureConnection", () => {
    handshakes += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterAll(() => {
  server.close();
  server.closeAllConnections();
});

test("a request under way is answered though the token changes meanwhile", async () => {
  const { port } = server.address() as AddressInfo;
  let token = "old";
  const send = httpsTransport(() => ({ host: "127.0.0.1", port, ca: cert, token }));
  const slow = send({ path: "/slow", deadlineMs: 30_000 }).catch((error: Error) => error);
  while (asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  token = "new";
  expect(await send({ path: "/", deadlineMs: 30_000 })).toEqual({ status: 200, body: "fast" });
  answerSlow();
  expect(await slow).toEqual({ status: 200, body: "slow" });
  expect(asked).toEqual(["Bearer old", "Bearer new"]);
  send.close();
});

test("an answer that is too large is told apart", async () => {
  const { port } = server.address() as AddressInfo;
  const send = httpsTransport({ host: "127.0.0.1", port, ca: cert, token: "token" });
  await expect(send({ path: "/large", deadlineMs: 30_000 })).rejects.toBeInstanceOf(ApiTooLarge);
  send.close();
});

test("requests with different tokens share a connection, whatever each is answered; others need the same CA", async () => {
  const { port } = server.address() as AddressInfo;
  const connections = new ApiConnections();
  const ask = async (token: string, ca = cert) =>
    (await connections.send({ host: "127.0.0.1", port, ca, token }, { path: "/", deadlineMs: 30_000 })).status;
  expect([await ask("one"), await ask("revoked"), await ask("one"), await ask("other")]).toEqual([200, 401, 200, 200]);
  expect(asked).toEqual(["Bearer one", "Bearer revoked", "Bearer one", "Bearer other"]);
  expect(handshakes).toBe(1);
  const { cert: foreign } = certificate({ subject: "foreign", names: ["127.0.0.1"] });
  await expect(ask("one", foreign)).rejects.toBeInstanceOf(ApiUnreachable);
  connections.close();
});
