/** The container runtime's side of NRI on a socket, for behaviour that real runtimes do not show on demand. */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { concat } from "../host/bytes";
import { eventually } from "../system/eventually.testing";
import { Event, Method } from "./messages";
import { FrameReader, frames, Stream } from "./mux";
import { bytesField, numberField, type Texts } from "./protobuf";
import { failure, MessageReader, request, response } from "./ttrpc";

export const texts: Texts = {
  encode: (text) => new TextEncoder().encode(text),
  decode: (bytes) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes),
};

/** A pod in a runtime's message. */
export interface Pod {
  readonly id: string;
  readonly name: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly netns?: string;
  readonly addresses?: readonly string[];
}

const textField = (field: number, text: string) => bytesField(field, texts.encode(text));
const mapField = (field: number, map: Readonly<Record<string, string>>) =>
  concat(
    Object.entries(map).map(([key, value]) => bytesField(field, concat([textField(1, key), textField(2, value)]))),
  );

export function podMessage({
  id,
  name,
  namespace = "shop",
  labels = {},
  annotations = {},
  netns,
  addresses = [],
}: Pod) {
  const network = netns === undefined ? [] : [bytesField(5, concat([textField(1, "network"), textField(2, netns)]))];
  return concat([
    textField(1, id),
    textField(2, name),
    textField(3, `uid-${id}`),
    textField(4, namespace),
    mapField(5, labels),
    mapField(6, annotations),
    bytesField(8, concat([bytesField(5, concat([textField(1, "pid")])), ...network])),
    numberField(9, 4711),
    ...addresses.map((address) => textField(10, address)),
  ]);
}

/** The behaviour of a runtime. */
interface Behaviour {
  /** Refuses the registration with this text. */
  readonly refuse?: string;
  /** Sends this as soon as a plugin connects, and nothing else. */
  readonly garbage?: Uint8Array;
  /** Ends each connection as soon as it is synchronized. */
  readonly drops?: boolean;
  /** Running pods, one message for each list. */
  readonly running?: readonly (readonly Pod[])[];
}

export class FakeRuntime {
  /** Names of registered plugins. */
  readonly registered: string[] = [];
  connections = 0;
  behaviour: Behaviour = {};
  private socket: Socket | undefined;
  private readonly answers = new Map<number, (error: string | undefined) => void>();
  private next = 1;
  private isSynchronized = false;

  private constructor(private readonly server: Server) {}

  static async listen(path: string, behaviour: Behaviour = {}): Promise<FakeRuntime> {
    const server = createServer();
    const runtime = new FakeRuntime(server);
    runtime.behaviour = behaviour;
    server.on("connection", (socket) => runtime.accept(socket));
    server.listen(path);
    await once(server, "listening");
    return runtime;
  }

  /** Waits until a plugin is registered and synchronized. */
  async synchronized(): Promise<void> {
    await eventually(() => (this.isSynchronized ? true : undefined));
  }

  /** Ends the connection, as a stopping runtime does. */
  drop(): void {
    this.isSynchronized = false;
    this.socket?.destroy();
  }

  async close(): Promise<void> {
    this.drop();
    this.server.close();
    await once(this.server, "close");
  }

  /** Calls the plugin. @returns its refusal */
  call(method: string, payload: Uint8Array): Promise<string | undefined> {
    return this.prepared(method, payload)();
  }

  /** A sandbox's start, encoded beforehand. */
  prepare(pod: Pod): () => Promise<string | undefined> {
    return this.prepared(Method.runPodSandbox, bytesField(1, podMessage(pod)));
  }

  private prepared(method: string, payload: Uint8Array): () => Promise<string | undefined> {
    const id = this.next;
    this.next += 2;
    const bytes = frames(Stream.plugin, request(id, method, payload, texts));
    return () => {
      const answered = new Promise<string | undefined>((resolve) => this.answers.set(id, resolve));
      this.socket?.write(bytes);
      return answered;
    };
  }

  /** A sandbox starts, by the call of NRI 0.12 or the older event. */
  run(pod: Pod, how: "call" | "event" = "call"): Promise<string | undefined> {
    const sandbox = podMessage(pod);
    if (how === "call") return this.call(Method.runPodSandbox, bytesField(1, sandbox));
    return this.call(Method.stateChange, concat([numberField(1, Event.runPodSandbox), bytesField(2, sandbox)]));
  }

  create(pod: Pod): Promise<string | undefined> {
    return this.call(Method.createContainer, concat([bytesField(1, podMessage(pod)), textField(2, "")]));
  }

  removed(pod: Pod): Promise<string | undefined> {
    return this.call(Method.removePodSandbox, bytesField(1, podMessage(pod)));
  }

  private accept(socket: Socket): void {
    this.connections++;
    this.socket = socket;
    const { garbage } = this.behaviour;
    const reader = new FrameReader();
    const readers = { [Stream.plugin]: new MessageReader(texts), [Stream.runtime]: new MessageReader(texts) };
    socket.on("error", () => {});
    if (garbage !== undefined) {
      socket.resume().end(garbage);
      return;
    }
    socket.on("data", (chunk) => {
      for (const [stream, payload] of reader.read(chunk)) {
        for (const message of readers[stream].read(payload)) {
          if (message.kind === "request") void this.registration(socket, message.id, message.payload);
          else {
            this.answers.get(message.id)?.(message.error);
            this.answers.delete(message.id);
          }
        }
      }
    });
  }

  private async registration(socket: Socket, id: number, payload: Uint8Array): Promise<void> {
    const { refuse, running = [[]] } = this.behaviour;
    if (refuse !== undefined) {
      socket.write(frames(Stream.runtime, failure(id, 2, refuse, texts)));
      return;
    }
    this.registered.push(texts.decode(payload));
    socket.write(frames(Stream.runtime, response(id, new Uint8Array(0))));
    const configure = [textField(2, "containerd"), textField(3, "v2.2"), numberField(5, 2000)];
    await this.call(Method.configure, concat(configure));
    for (const [index, pods] of running.entries()) {
      const more = numberField(3, index < running.length - 1 ? 1 : 0);
      await this.call(Method.synchronize, concat([...pods.map((pod) => bytesField(1, podMessage(pod))), more]));
    }
    this.isSynchronized = true;
    if (this.behaviour.drops === true) socket.destroy();
  }
}
