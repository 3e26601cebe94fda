/** One connection to a container runtime: registers this plugin, and answers the runtime's calls. */
import { printable, reasonOf } from "../cni/errors";
import {
  type Configuration,
  Event,
  Method,
  REGISTER,
  readConfigure,
  readPodOf,
  readStateChange,
  readSynchronize,
  registration,
  type Sandbox,
  subscription,
  synchronized,
} from "./messages";
import { FrameReader, frames, Stream } from "./mux";
import { ProtocolError, type Texts } from "./protobuf";
import { Code, failure, MessageReader, type Request, type Response, request, response } from "./ttrpc";

/** The runtime refuses this plugin. */
export class RegistrationRefused extends Error {
  override readonly name = "RegistrationRefused";
}

/** Handlers of the runtime's calls. An error refuses the call. */
export interface Handler {
  configured(configuration: Configuration): void;
  /** A sandbox starts, before any of its containers exists. */
  run(sandbox: Sandbox): void;
  /** A container is about to be created. */
  create(sandbox: Sandbox): void;
  removed(sandbox: Sandbox): void;
  /** Everything that ran before this connection. */
  synchronize(sandboxes: readonly Sandbox[]): void;
}

interface SessionDeps {
  /** This plugin's identity in the runtime: its name, and two digits for the order of plugins. */
  readonly name: string;
  readonly index: string;
  readonly handler: Handler;
  readonly send: (bytes: Uint8Array) => void;
  readonly texts: Texts;
}

const NOTHING = new Uint8Array(0);
/** Streams of a client have odd numbers. */
const REGISTRATION_ID = 1;
const EVENTS = [Event.runPodSandbox, Event.removePodSandbox, Event.createContainer];

export class Session {
  private readonly frames = new FrameReader();
  private readonly calls: MessageReader;
  private readonly answers: MessageReader;
  private running: Sandbox[] = [];
  /** The action after the answer to the current call. */
  private afterwards: (() => void) | undefined;

  constructor(private readonly deps: SessionDeps) {
    this.calls = new MessageReader(deps.texts);
    this.answers = new MessageReader(deps.texts);
  }

  register(): void {
    const { name, index, send, texts } = this.deps;
    const call = request(REGISTRATION_ID, REGISTER, registration(name, index, texts), texts);
    send(frames(Stream.runtime, call));
  }

  /** Processes bytes from the runtime. @throws ProtocolError, RegistrationRefused: the connection must be closed */
  receive(chunk: Uint8Array): void {
    for (const [stream, payload] of this.frames.read(chunk)) {
      if (stream === Stream.plugin) {
        for (const call of this.calls.read(payload)) this.answer(call);
      } else {
        for (const answer of this.answers.read(payload)) {
          if (answer.kind !== "response") throw new ProtocolError("a call among the answers");
          if (answer.error !== undefined) throw new RegistrationRefused(answer.error);
        }
      }
    }
  }

  private answer(call: Request | Response): void {
    if (call.kind !== "request") throw new ProtocolError("an answer among the calls");
    const { send, texts } = this.deps;
    send(frames(Stream.plugin, this.answerTo(call, texts)));
    const { afterwards } = this;
    this.afterwards = undefined;
    afterwards?.();
  }

  private answerTo({ id, method, payload }: Request, texts: Texts): Uint8Array {
    const handle = Object.hasOwn(this.methods, method) ? this.methods[method] : undefined;
    if (handle === undefined) return failure(id, Code.unimplemented, `${method} is not implemented`, texts);
    try {
      return response(id, handle(payload));
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      return failure(id, Code.unknown, `${this.deps.name}: ${printable(reasonOf(error))}`, texts);
    }
  }

  private readonly methods: Readonly<Record<string, (payload: Uint8Array) => Uint8Array>> = {
    [Method.configure]: (payload) => {
      this.deps.handler.configured(readConfigure(payload, this.deps.texts));
      return subscription(EVENTS);
    },
    [Method.synchronize]: (payload) => {
      const { sandboxes, more } = readSynchronize(payload, this.deps.texts);
      // The runtime does not start pods before it has the answer, and drops a plugin that takes too long.
      this.afterwards = () => {
        for (const sandbox of sandboxes()) this.running.push(sandbox);
        if (more) return;
        this.deps.handler.synchronize(this.running);
        this.running = [];
      };
      return synchronized({ more });
    },
    [Method.stateChange]: (payload) => {
      const { event, sandbox } = readStateChange(payload, this.deps.texts);
      if (event === Event.runPodSandbox) this.deps.handler.run(sandbox);
      else if (event === Event.removePodSandbox) this.deps.handler.removed(sandbox);
      return NOTHING;
    },
    [Method.runPodSandbox]: (payload) => this.about(payload, "run"),
    [Method.removePodSandbox]: (payload) => this.about(payload, "removed"),
    [Method.createContainer]: (payload) => this.about(payload, "create"),
    [Method.shutdown]: () => NOTHING,
  };

  private about(payload: Uint8Array, event: "run" | "removed" | "create"): Uint8Array {
    this.deps.handler[event](readPodOf(payload, this.deps.texts));
    return NOTHING;
  }
}
