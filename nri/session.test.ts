import fc from "fast-check";
import { concat } from "../host/bytes";
import { Event, Method, type Sandbox } from "./messages";
import { frames, Stream } from "./mux";
import { bytesField, numberField, ProtocolError } from "./protobuf";
import { podMessage, texts } from "./runtime.testing";
import { type Handler, RegistrationRefused, Session } from "./session";
import { failure, request } from "./ttrpc";

/** A session that records calls and answers. */
function session(changes: Partial<Handler> = {}, decode = texts.decode) {
  const calls: string[] = [];
  const sent: number[] = [];
  const handler: Handler = {
    configured: ({ runtime }) => calls.push(`configured ${runtime}`),
    synchronize: (sandboxes) => calls.push(`synchronize ${sandboxes.map(({ name }) => name)}`),
    run: ({ name }) => calls.push(`run ${name}`),
    create: ({ name }) => calls.push(`create ${name}`),
    removed: ({ id }) => calls.push(`removed ${id}`),
    ...changes,
  };
  const send = (bytes: Uint8Array) => void sent.push(...bytes);
  return {
    calls,
    sent,
    session: new Session({ name: "linkerd-cni", index: "10", handler, send, texts: { ...texts, decode } }),
  };
}

const call = (method: string, payload: Uint8Array, id = 1) =>
  frames(Stream.plugin, request(id, method, payload, texts));

const pod = (name: string, annotations: Readonly<Record<string, string>> = {}) =>
  bytesField(1, podMessage({ id: `id-${name}`, name, annotations }));

test("accepts calls in chunks of any size", () => {
  const bytes = [
    ...call(Method.synchronize, concat([pod("one", { note: "n".repeat(9000) }), pod("two"), numberField(3, 1)])),
    ...call(Method.synchronize, concat([pod("three"), pod("four", { note: "n".repeat(8000) })]), 3),
    ...call(Method.runPodSandbox, pod("five"), 5),
    ...call(Method.removePodSandbox, pod("five"), 7),
  ];
  const wanted = ["synchronize one,two,three,four", "run five", "removed id-five"];
  fc.assert(
    fc.property(fc.array(fc.nat(bytes.length), { maxLength: 20 }), (cuts) => {
      const { calls, session: taken } = session();
      const ends = [...cuts, bytes.length].sort((a, b) => a - b);
      ends.forEach((end, index) => {
        taken.receive(Uint8Array.from(bytes.slice(ends[index - 1] ?? 0, end)));
      });
      expect(calls).toEqual(wanted);
    }),
  );
});

test("any input is understood or a protocol error", () => {
  const chunk = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.uint8Array({ maxLength: 300 }).map((bytes) => frames(Stream.plugin, bytes)),
    fc
      .tuple(fc.constantFrom(...Object.values(Method)), fc.uint8Array({ maxLength: 300 }))
      .map(([method, payload]) => call(method, payload)),
  );
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 5 }), (chunks) => {
      const { session: taken } = session();
      try {
        for (const each of chunks) taken.receive(each);
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
      }
    }),
    { numRuns: 2000 },
  );
});

describe("a pod with 60,000 unrelated annotations and labels", () => {
  const many = Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`k${at.toString(36)}`, "v"]));
  const proxy = { "linkerd.io/proxy-version": "x" };
  const hostile = podMessage({ id: "hostile", name: "hostile", labels: many, annotations: { ...many, ...proxy } });
  const named = concat([bytesField(1, hostile), bytesField(2, concat([bytesField(1, hostile)]))]);

  test.each([
    ["Synchronize", Method.synchronize, named],
    ["RunPodSandbox", Method.runPodSandbox, named],
    ["StateChange", Method.stateChange, concat([numberField(1, Event.runPodSandbox), bytesField(2, hostile)])],
    ["CreateContainer", Method.createContainer, named],
    ["RemovePodSandbox", Method.removePodSandbox, named],
  ])("is decoded by %s without creating a text or an array for each", (_, method, payload) => {
    const bytes = call(method, payload);
    let decoded = 0;
    const { calls, session: taken } = session({}, (text) => {
      decoded++;
      return texts.decode(text);
    });
    const subarray = jest.spyOn(Uint8Array.prototype, "subarray");
    taken.receive(bytes);
    const parts = subarray.mock.calls.length;
    subarray.mockRestore();
    expect(calls).toHaveLength(1);
    expect(decoded).toBeLessThan(100);
    // Some for each frame.
    expect(parts).toBeLessThan(10_000);
  });

  test("keeps only annotations and labels for decisions", () => {
    const seen: Sandbox[] = [];
    const { session: taken } = session({ run: (sandbox) => void seen.push(sandbox) });
    taken.receive(call(Method.runPodSandbox, named));
    expect(seen).toEqual([expect.objectContaining({ name: "hostile", annotations: proxy, labels: {} })]);
  });
});

test("Synchronize is answered before its pods are decoded", () => {
  const order: string[] = [];
  const handler: Handler = {
    configured: () => {},
    synchronize: () => void order.push("decoded"),
    run: () => {},
    create: () => {},
    removed: () => {},
  };
  const send = () => void order.push("answered");
  const taken = new Session({ name: "linkerd-cni", index: "10", handler, send, texts });
  taken.receive(call(Method.synchronize, pod("one")));
  expect(order).toEqual(["answered", "decoded"]);
});

test("an unknown call is answered as unimplemented, so that the runtime uses an older one", () => {
  const { sent, session: taken } = session();
  taken.receive(call("nri.pkg.api.v1alpha1.Plugin/toString", new Uint8Array(0)));
  expect(texts.decode(Uint8Array.from(sent))).toContain("Plugin/toString is not implemented");
  // Code 12 in the status.
  expect(sent.slice(18, 24)).toEqual([0x0a, expect.any(Number), 0x08, 12, 0x12, expect.any(Number)]);
});

test("an error refuses the call", () => {
  const refuse = () => {
    throw new Error("no");
  };
  const { sent, session: taken } = session({ run: refuse });
  taken.receive(call(Method.runPodSandbox, pod("one")));
  expect(texts.decode(Uint8Array.from(sent))).toContain("linkerd-cni: no");
});

test("a refused registration ends the session", () => {
  const { session: taken } = session();
  taken.register();
  const refusal = frames(Stream.runtime, failure(1, 2, "go away", texts));
  expect(() => taken.receive(refusal)).toThrow(new RegistrationRefused("go away"));
});

test.each([
  ["a frame of another stream", [0, 0, 0, 3, 0, 0, 0, 0], "a frame of stream 3"],
  ["a frame without end", [0, 0, 0, 1, 255, 0, 0, 0], "a frame of 4278190080 bytes"],
  ["a message without end", [0, 0, 0, 1, 0, 0, 0, 10, 255, 0, 0, 0, 0, 0, 0, 1, 1, 0], "a message of 4278190080 bytes"],
])("%s is refused", (_, bytes, message) => {
  expect(() => session().session.receive(Uint8Array.from(bytes))).toThrow(new ProtocolError(message));
});
