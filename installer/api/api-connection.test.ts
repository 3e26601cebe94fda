import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createLog } from "../../process/log";
import { certificate } from "../../system/certificates.testing";
import { ApiConnection } from "./api-connection";

test("an unreachable API server is tried again soon, and then as often as a reachable one", async () => {
  let now = 0;
  const connection = new ApiConnection({
    // Nothing listens on this port.
    access: () => ({ host: "127.0.0.1", port: 1, ca: "CA", token: "token" }),
    path: "/pod",
    log: createLog("error", "plain", () => undefined),
    clock: { now: () => now, random: () => 1 },
  });
  const pauses: number[] = [];
  for (let round = 0; round < 4; round++) {
    const pause = await connection.checkIfDue();
    pauses.push(pause);
    now += pause;
  }
  connection.close();
  expect(pauses).toEqual([3_000, 6_000, 10_000, 10_000]);
  expect(connection.problem).toBeDefined();
});

test("a look-up that is refused is told with the token that it was sent with, also if that was just replaced", async () => {
  const { cert, key } = certificate({ subject: "api", names: ["127.0.0.1"] });
  const server = createServer({ cert, key }, (request, response) => {
    response.statusCode = request.headers.authorization === "Bearer revoked" ? 401 : 200;
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  let [token, now] = ["first", 0];
  const told: [string, number][] = [];
  const connection = new ApiConnection({
    access: () => ({ host: "127.0.0.1", port, ca: cert, token }),
    path: "/pod",
    answered: (access, status) => told.push([access.token, status]),
    log: createLog("error", "plain", () => undefined),
    clock: { now: () => now, random: () => 1 },
  });
  try {
    await connection.checkIfDue();
    token = "revoked";
    // By now it is read again.
    now += 1_000;
    expect((await connection.get("/pod", 30_000)).status).toBe(401);
    expect(told).toEqual([
      ["first", 200],
      ["revoked", 401],
    ]);
  } finally {
    connection.close();
    server.close();
  }
});
