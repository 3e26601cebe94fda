import { Errno } from "../host/errno";
import { FakeHost } from "../host/fake.testing";
import { Poll } from "../host/poll";
import { createLog } from "../process/log";
import { Daemon } from "./daemon";
import { Method } from "./messages";
import { frames, Stream } from "./mux";
import { bytesField } from "./protobuf";
import { podMessage, texts } from "./runtime.testing";
import { readSettings } from "./settings";
import { request } from "./ttrpc";

class Enough extends Error {}

/** A machine on which the runtime names its pods, and after it the port always has input. */
class BusyHost extends FakeHost {
  private polls = 0;

  constructor(private readonly fromRuntime: Uint8Array) {
    super({ netfilter: () => [] });
  }

  override connect = () => 0;

  override receive(_socket: number, into: Uint8Array): number {
    if (this.polls > 1) return -Errno.EAGAIN;
    into.set(this.fromRuntime);
    return this.fromRuntime.length;
  }

  override pollAll(polled: Uint8Array): number {
    if (++this.polls > 10) throw new Enough();
    // The runtime's descriptor is the first, the listener's the second.
    const revents = this.polls === 1 ? 6 : 14;
    new DataView(polled.buffer, polled.byteOffset).setInt16(revents, Poll.input, true);
    return 1;
  }
}

it("looks at the pods that run whatever clients of the port do", () => {
  const running = ["one", "two"].map((name) =>
    bytesField(1, podMessage({ id: name, name, netns: `/run/netns/${name}` })),
  );
  const call = request(1, Method.synchronize, new Uint8Array(Buffer.concat(running)), texts);
  const host = new BusyHost(frames(Stream.plugin, call));
  const lines: string[] = [];
  const log = createLog("debug", "plain", (line) => lines.push(line), "nri");
  expect(() => new Daemon({ host, settings: readSettings({ env: () => undefined }), log }).run()).toThrow(Enough);
  expect(lines.filter((line) => line.includes("no proxy"))).toEqual([
    expect.stringContaining("pod shop/one"),
    expect.stringContaining("pod shop/two"),
  ]);
});
