import { createLog } from "../../process/log";
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
