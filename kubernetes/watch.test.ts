import type { ApiServer } from "./api-server";
import { ApiUnreachable } from "./api-server";
import type { Transport } from "./transport";
import { watch } from "./watch";

const SERVER: ApiServer = { host: "127.0.0.1", port: 1 };

/** The pauses of a watch whose lists are answered by `send`, which may take time. */
async function pauses(count: number, send: (pass: (ms: number) => void) => ReturnType<Transport>) {
  const stop = new AbortController();
  const slept: number[] = [];
  let time = 0;
  const deps = {
    server: () => SERVER,
    send: () =>
      send((ms) => {
        time += ms;
      }),
    now: () => time,
    sleep: async (ms: number) => {
      if (slept.push(ms) === count) stop.abort();
    },
    random: () => 1,
    troubled: () => undefined,
    signal: stop.signal,
  };
  for await (const _ of watch({ path: "/api/v1/pods" }, deps));
  return slept;
}

test("the pauses grow while an API server does not answer, however long each attempt takes", async () => {
  const silent = async (pass: (ms: number) => void) => {
    pass(30_000);
    throw new ApiUnreachable("127.0.0.1:1", "no answer within 30000 ms");
  };
  expect(await pauses(4, silent)).toEqual([500, 1_000, 2_000, 4_000]);
});

test("they grow while it answers lists, slowly, and no watch", async () => {
  const list = async (pass: (ms: number) => void) => {
    pass(30_000);
    return { status: 200, body: JSON.stringify({ metadata: {}, items: [] }) };
  };
  expect(await pauses(4, list)).toEqual([500, 1_000, 2_000, 4_000]);
});
