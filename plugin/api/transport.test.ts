import { ApiUnreachable } from "../../kubernetes/client";
import { leanTransport } from "./transport";
import type { Connect, Wire, WireEvents } from "./wire";

const server = { host: "10.0.0.1", port: 443 };
const ok = Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");

/** A network for tests: each connection is played by the next script. */
function network(...scripts: ((events: WireEvents) => void)[]) {
  const log: string[] = [];
  const wire: Wire = { send: () => log.push("sent") };
  const connect: Connect = (_, events) => {
    log.push("connect");
    const script = scripts.shift();
    queueMicrotask(() => {
      if (script !== undefined) {
        events.begun();
        events.ready(wire);
        script(events);
      }
    });
    return () => log.push("gave up");
  };
  const transport = leanTransport({ server, connect, whileWaiting: () => log.push("waiting") });
  return { log, get: (deadlineMs = 1000) => transport({ path: "/", deadlineMs }) };
}

describe("a request", () => {
  it("is sent once, and the connection is let go when it is answered", async () => {
    const { log, get } = network((events) => {
      events.received(ok.subarray(0, 20));
      events.received(ok.subarray(20));
      events.ended();
    });
    expect(await get()).toEqual({ status: 200, body: "{}" });
    expect(log).toEqual(["connect", "waiting", "sent", "gave up"]);
  });

  it("is sent again when the connection drops before an answer, once", async () => {
    const drop = (events: WireEvents) => events.ended("reset");
    const good = network(drop, (events) => events.received(ok));
    expect((await good.get()).status).toBe(200);
    expect(good.log.filter((entry) => entry === "waiting")).toHaveLength(1);
    await expect(network(drop, drop).get()).rejects.toThrow("API server 10.0.0.1:443: reset");
  });

  it("is sent again when the connection breaks before it is encrypted, and not when it is refused", async () => {
    const failing = (tell: (events: WireEvents) => void) => {
      const connect = jest.fn<() => void, Parameters<Connect>>((_, events) => {
        queueMicrotask(() => tell(events));
        return () => undefined;
      });
      const transport = leanTransport({ server, connect, whileWaiting: () => undefined });
      return { connect, failure: transport({ path: "/", deadlineMs: 1000 }) };
    };
    const broken = failing((events) => events.ended("broke"));
    await expect(broken.failure).rejects.toThrow("API server 10.0.0.1:443: broke");
    expect(broken.connect).toHaveBeenCalledTimes(2);
    const refused = failing((events) => events.refused("not trusted"));
    await expect(refused.failure).rejects.toThrow("API server 10.0.0.1:443: not trusted");
    expect(refused.connect).toHaveBeenCalledTimes(1);
  });

  it("fails where the connection fails before it could be given up, and gives it up then", async () => {
    const abandon = jest.fn();
    const connect: Connect = (_, events) => {
      events.refused("no route");
      return abandon;
    };
    const transport = leanTransport({ server, connect, whileWaiting: () => undefined });
    await expect(transport({ path: "/", deadlineMs: 1000 })).rejects.toThrow("API server 10.0.0.1:443: no route");
    expect(abandon).toHaveBeenCalledTimes(1);
  });

  it("fails where connecting throws", async () => {
    const connect: Connect = () => {
      throw new Error("no such address");
    };
    const transport = leanTransport({ server, connect, whileWaiting: () => undefined });
    await expect(transport({ path: "/", deadlineMs: 1000 })).rejects.toThrow(ApiUnreachable);
  });

  it("is not sent again when the answer breaks off", async () => {
    const { log, get } = network((events) => {
      events.received(ok.subarray(0, 30));
      events.ended();
    });
    await expect(get()).rejects.toThrow("closed the connection without a whole answer");
    expect(log.filter((entry) => entry === "sent")).toHaveLength(1);
  });

  it("has a deadline for the connection and one for the answer", async () => {
    await expect(network().get(20)).rejects.toThrow("no connection within 20 ms");
    await expect(network(() => undefined).get(500)).rejects.toThrow("no answer within 500 ms");
  });

  it("has no more time for the answer because the connection took long", async () => {
    const slow: Connect = (_, events) => {
      const timer = setTimeout(() => events.ready({ send: () => undefined }), 100);
      return () => clearTimeout(timer);
    };
    const timers = jest.spyOn(globalThis, "setTimeout");
    const transport = leanTransport({ server, connect: slow, whileWaiting: () => undefined });
    await expect(transport({ path: "/", deadlineMs: 700 })).rejects.toThrow("within 700 ms");
    const delays = timers.mock.calls.map(([, delay]) => Number(delay));
    timers.mockRestore();
    expect(delays[0]).toBe(700);
    expect(Math.max(...delays.slice(1))).toBeLessThan(650);
  });

  it("does not take an answer without end", async () => {
    const endless = network((events) => {
      events.received(Buffer.from("HTTP/1.1 200 OK\r\n\r\n"));
      const megabyte = Buffer.alloc(1024 * 1024, "x");
      for (let sent = 0; sent < 20; sent++) events.received(megabyte);
    });
    await expect(endless.get()).rejects.toThrow("sent more than 16777216 bytes");
  });

  it("fails with what did not answer", async () => {
    const failure = await network((events) => events.received(Buffer.from("no\r\n\r\n")))
      .get()
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ApiUnreachable);
    expect(failure).toHaveProperty("message", 'API server 10.0.0.1:443: answered "no", which is not HTTP/1.1');
  });
});
