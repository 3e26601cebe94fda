import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { certificate } from "../system/certificates.testing";
import { ApiTooLarge, httpsTransport } from "./transport";

let server: Server;
let cert = "";
/** Tokens of the requests in their order. */
const asked: (string | undefined)[] = [];
let answerSlow: () => void = () => undefined;

beforeAll(async () => {
  const made = certificate({ subject: "api", names: ["127.0.0.1"] });
  cert = made.cert;
  server = createServer({ cert, key: made.key }, (request, response) => {
    asked.push(request.headers.authorization);
    if (request.url === "/slow") answerSlow = () => response.end("slow");
    else response.end(request.url === "/large" ? "x".repeat(9 * 1024 * 1024) : "fast");
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
  const send = httpsTransport({ host: "127.0.0.1", port, ca: cert });
  await expect(send({ path: "/large", deadlineMs: 30_000 })).rejects.toBeInstanceOf(ApiTooLarge);
  send.close();
});
