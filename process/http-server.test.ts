import { health, metrics, serve } from "./http-server";
import { Registry } from "./metrics";

test("answers by path, until it is closed", async () => {
  const registry = new Registry();
  registry.gauge({ name: "up", help: "Up." }, () => 1);
  const server = await serve(
    { host: "127.0.0.1", port: 0 },
    {
      "/live": () => health(),
      "/ready": async () => health("not yet"),
      "/metrics": () => metrics(registry),
      "/broken": () => {
        throw new Error("broken");
      },
    },
  );
  const url = `http://127.0.0.1:${server.port}`;
  const ask = async (path: string) => {
    const response = await fetch(`${url}${path}`);
    return [response.status, await response.text()];
  };
  expect(await ask("/live?verbose")).toEqual([200, "ok\n"]);
  expect(await ask("/ready")).toEqual([503, "not yet\n"]);
  expect(await ask("/metrics")).toEqual([200, registry.text()]);
  expect(await ask("/broken")).toEqual([503, "broken\n"]);
  expect(await ask("/toString")).toEqual([404, "not found\n"]);
  const { headers } = await fetch(`${url}/metrics`);
  expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  // An idle connection would be one that a hostile client could keep.
  expect(headers.get("connection")).toBe("close");
  server.close();
  await expect(fetch(url)).rejects.toThrow();
});

test("a port that is taken is refused", async () => {
  const server = await serve({ port: 0 }, {});
  await expect(serve({ port: server.port }, {})).rejects.toThrow(/EADDRINUSE/);
  server.close();
});
