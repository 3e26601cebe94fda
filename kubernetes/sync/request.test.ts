import { Errno } from "../../host/errno";
import { type FakeApi, FakeHost, response } from "../../host/fake.testing";
import type { TlsFailure } from "../../host/port";
import { ApiUnreachable } from "../api-server";
import { encodeRequest, get } from "./request";

const server = { host: "10.0.0.1", port: 443 };
const ok = response(200, "{}");
const failure = (step: TlsFailure["step"], errno: number, text = ""): TlsFailure => ({ step, error: -errno, text });

/** A server with one script per connection: the sent data, or why the connection fails. */
function played(...scripts: readonly (string | TlsFailure)[]) {
  const left = [...scripts];
  const api: FakeApi = (path) => {
    const next = left[0];
    if (next === undefined) throw new Error("one connection too many");
    if (path !== "" || typeof next !== "string") left.shift();
    return next;
  };
  return new FakeHost({ api });
}

it("a request has the server's name and the token", () => {
  expect(encodeRequest({ host: "fd00::1", port: 6443, token: "secret" }, "/api/v1").split("\r\n")).toEqual([
    "GET /api/v1 HTTP/1.1",
    "Host: [fd00::1]:6443",
    "Accept: application/json",
    "User-Agent: linkerd-cni",
    "Authorization: Bearer secret",
    "",
    "",
  ]);
  expect(encodeRequest({ host: "a", port: 1 }, "/")).not.toContain("Authorization");
});

describe("a request", () => {
  it("is sent once", () => {
    const host = played(ok);
    expect(get(host, server, "/x", 1000)).toEqual({ status: 200, body: "{}" });
    expect(host.requests).toEqual(["/x"]);
  });

  it("is sent again when the connection drops before an answer, once", () => {
    const host = played("", ok);
    expect(get(host, server, "/", 1000).status).toBe(200);
    expect(host.requests).toHaveLength(2);
    expect(() => get(played("", ""), server, "/", 1000)).toThrow(
      "API server 10.0.0.1:443: closed the connection without a whole answer",
    );
  });

  it("is sent again if the handshake breaks, but not if the connection is refused or not trusted", () => {
    const broken = failure("handshake", Errno.ECONNRESET);
    expect(get(played(broken, ok), server, "/", 1000).status).toBe(200);
    expect(() => get(played(broken, broken), server, "/", 1000)).toThrow("broke during the TLS handshake");
    expect(() => get(played(failure("connect", Errno.ECONNREFUSED)), server, "/", 1000)).toThrow("connection refused");
    expect(() => get(played(failure("verify", 0, "expired")), server, "/", 1000)).toThrow(
      "API server 10.0.0.1:443: its certificate is not trusted: expired",
    );
  });

  it.each<[TlsFailure, string]>([
    [failure("ca", 0, "bad PEM"), "the kubeconfig's certificate authority cannot be read: bad PEM"],
    [failure("certificate", 0, "no match"), "the kubeconfig's client certificate cannot be used: no match"],
    [failure("connect", Errno.ENETUNREACH), "no route to it"],
    [failure("connect", Errno.EACCES), "the node forbids the connection"],
    [failure("connect", Errno.ETIMEDOUT), "no connection within 1000 ms"],
    [failure("handshake", 0, "no shared cipher"), "the TLS handshake failed: no shared cipher"],
    [failure("handshake", Errno.ETIMEDOUT), "no connection within 1000 ms"],
  ])("reports why the connection failed: %j", (problem, message) => {
    expect(() => get(played(problem), server, "/", 1000)).toThrow(`API server 10.0.0.1:443: ${message}`);
  });

  it("has 3 s for the connection, and a slow connection does not extend the deadline", () => {
    const host = played(ok);
    const limits: number[] = [];
    const { tlsConnect, tlsReceive } = FakeHost.prototype;
    host.tlsConnect = (to, milliseconds?: number) => {
      limits.push(milliseconds ?? 0);
      host.now += 2000;
      return tlsConnect.call(host, to);
    };
    host.tlsReceive = (into, milliseconds?: number) => {
      limits.push(milliseconds ?? 0);
      return tlsReceive.call(host, into);
    };
    get(host, server, "/", 5000);
    expect(limits).toEqual([3000, 3000]);
  });

  it("fails without an answer in time", () => {
    const host = played(ok);
    host.tlsReceive = () => -Errno.ETIMEDOUT;
    expect(() => get(host, server, "/", 500)).toThrow("no answer within 500 ms");
  });

  it("fails if the answer takes longer than the deadline", () => {
    const host = played("");
    host.tlsReceive = (into, milliseconds = 0) => {
      if (milliseconds <= 0) return -Errno.ETIMEDOUT;
      if (host.now > 10_000) throw new Error("still waiting after ten seconds");
      host.now += 0.5;
      into.fill(0x48, 0, 1);
      return 1;
    };
    expect(() => get(host, server, "/", 500)).toThrow("no answer within 500 ms");
  });

  it("is sent to one of a name's addresses, families in turn", () => {
    const host = played(ok);
    host.resolve = () => ["10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1"];
    expect(get(host, { ...server, host: "api.example" }, "/", 1000).status).toBe(200);
    expect(host.servers.map(({ addresses, name }) => [addresses.split("\n"), name])).toEqual([
      [["10.0.0.1", "fd00::1", "10.0.0.2", "10.0.0.3"], "api.example"],
    ]);
    expect(() => get(played(), { ...server, host: "none.example" }, "/", 1000)).toThrow(
      "its host name cannot be resolved: none.example",
    );
  });

  it("finds a name in /etc/hosts, in capitals and at the end of a long line, too", () => {
    const aliases = Array.from({ length: 100 }, (_, at) => `alias-${at}.example`).join(" ");
    const files = {
      "/etc/hosts": `# 10.0.0.9 api.example\n10.0.0.1\t${aliases} API.example # x\n::1 api.example.\nx api.example\n`,
    };
    const host = new FakeHost({ api: () => ok, files });
    expect(get(host, { ...server, host: "Api.Example" }, "/", 1000).status).toBe(200);
    expect(host.servers.map(({ addresses }) => addresses)).toEqual(["10.0.0.1\n::1"]);
  });

  it("is not sent again if the answer breaks off", () => {
    const host = played(ok.slice(0, 30));
    expect(() => get(host, server, "/", 1000)).toThrow("closed the connection without a whole answer");
    expect(host.requests).toHaveLength(1);
  });

  it("refuses an endless answer", () => {
    const endless = played(`HTTP/1.1 200 OK\r\n\r\n${"x".repeat(9 * 1024 * 1024)}`);
    expect(() => get(endless, server, "/", 1000)).toThrow("sent more than 8388608 bytes");
  });

  it("fails with the name of the server", () => {
    const call = () => get(played("no\r\n\r\n"), server, "/", 1000);
    expect(call).toThrow(ApiUnreachable);
    expect(call).toThrow('API server 10.0.0.1:443: answered "no", which is not HTTP/1.1');
  });
});

describe("an overloaded server", () => {
  const busy = (header: string) => response(429, "", header);

  it("is asked again after the requested pause", () => {
    const host = played(busy("Retry-After: 2\r\n"), ok);
    expect(get(host, server, "/", 5000).status).toBe(200);
    expect(host.pauses).toEqual([2000]);
  });

  it("is asked again after a second without Retry-After", () => {
    const host = played(busy(""), ok);
    expect(get(host, server, "/", 5000).status).toBe(200);
    expect(host.pauses).toEqual([1000]);
  });

  it("is asked again if it is unavailable and sends Retry-After", () => {
    const unavailable = response(503, "", "Retry-After: 1\r\n");
    const host = played(unavailable, ok);
    expect(get(host, server, "/", 5000).status).toBe(200);
    expect(host.pauses).toEqual([1000]);
    expect(get(played(response(503, "")), server, "/", 5000).status).toBe(503);
  });

  it("is asked twice at most, and not beyond the deadline", () => {
    const again = played(busy(""), busy(""));
    expect([get(again, server, "/", 5000).status, again.requests.length]).toEqual([429, 2]);
    const late = played(busy("Retry-After: 60\r\n"));
    expect([get(late, server, "/", 5000).status, late.pauses]).toEqual([429, []]);
  });
});
