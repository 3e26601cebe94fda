import { ResponseReader } from "./message";

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const decode = (bytes: Uint8Array) => decoder.decode(bytes);
const reader = () => new ResponseReader(decode);

describe("a response", () => {
  const cases: [string, string, string][] = [
    ["of known length", "Content-Length: 6\r\n", "pod é"],
    ["in chunks", "Transfer-Encoding: chunked\r\n", "3\r\npod\r\n3;x=y\r\n é\r\n0\r\n\r\n"],
  ];
  it.each(cases)("%s is read when its last byte is there", (_, header, body) => {
    const whole = Buffer.from(`HTTP/1.1 200 OK\r\nA: b\r\n${header}\r\n${body}`);
    const wanted = { status: 200, body: "pod é" };
    for (let cut = 1; cut < whole.length; cut++) {
      const read = reader();
      expect(read.receive(whole.subarray(0, cut))).toBeUndefined();
      expect(read.receive(whole.subarray(cut))).toEqual(wanted);
    }
    const read = reader();
    const answers = [...whole].map((byte) => read.receive(Uint8Array.of(byte)));
    expect(answers.at(-1)).toEqual(wanted);
    expect(answers.slice(0, -1).every((answer) => answer === undefined)).toBe(true);
  });

  it("that others announce comes after them", () => {
    const hints = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    const whole = Buffer.from(`${hints}HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\npod`);
    for (let cut = 1; cut < whole.length; cut++) {
      const read = reader();
      expect(read.receive(whole.subarray(0, cut))).toBeUndefined();
      expect(read.receive(whole.subarray(cut))).toEqual({ status: 200, body: "pod" });
    }
  });

  it("of unknown length ends with the connection", () => {
    const whole = Buffer.from("HTTP/1.0 503 Busy\r\n\r\nlater");
    const read = reader();
    expect(read.receive(whole)).toBeUndefined();
    expect(read.end()).toEqual({ status: 503, body: "later" });
  });

  it("that breaks off is none", () => {
    const part = Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npod");
    const read = reader();
    expect(read.receive(part)).toBeUndefined();
    expect(read.end()).toBeUndefined();
    expect(reader().end()).toBeUndefined();
  });

  it.each(["SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"])(
    "%j is refused",
    (text) => expect(() => reader().receive(Buffer.from(`${text}\r\n\r\n`))).toThrow(),
  );
});

it.each(["Content-Length: -1", "Content-Length: 1e3", "Content-Length: x"])(
  "a response with %s is refused",
  (header) => {
    expect(() => reader().receive(Buffer.from(`HTTP/1.1 200 OK\r\n${header}\r\n\r\n`))).toThrow("sent Content-Length");
  },
);

it("a head without end is refused", () => {
  expect(() => reader().receive(Buffer.from(`HTTP/1.1 200 OK\r\nA: ${"x".repeat(70_000)}`))).toThrow(
    "sent more than 65536 bytes before the body",
  );
});

it("interim responses without end are refused", () => {
  const many = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(5000);
  expect(() => reader().receive(Buffer.from(many))).toThrow("sent more than 65536 bytes before the body");
});

it("a response says how long to wait", () => {
  const text = "HTTP/1.1 429 Too Many\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n";
  expect(reader().receive(Buffer.from(text))).toEqual({ status: 429, body: "", retryAfter: "2" });
});
