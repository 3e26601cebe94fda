import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { Fields, type Texts } from "../../nri/protobuf";
import { CGROUP } from "./cgroups";

/** A pod's sandbox, as a kubelet asks for it. */
interface SandboxConfig {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A runtime's state of a sandbox. */
interface SandboxStatus {
  readonly isReady: boolean;
  /** The pod's address; empty if the runtime has none, or let go of it. */
  readonly address: string;
  /** Path of the pod's network namespace. */
  readonly netns: string;
}

const DEADLINE_MS = 60_000;

/** A message as a whole. */
class Message {
  private readonly fields: { readonly field: number; readonly number: number; readonly data: Uint8Array }[] = [];

  constructor(bytes: Uint8Array) {
    for (const read = new Fields(bytes, TEXTS); read.next(); )
      this.fields.push({ field: read.field, number: read.number, data: read.data() });
  }

  private last(field: number) {
    return this.fields.findLast((each) => each.field === field);
  }

  number(field: number): number {
    return this.last(field)?.number ?? 0;
  }

  text(field: number): string {
    return TEXTS.decode(this.last(field)?.data ?? EMPTY);
  }

  message(field: number): Message {
    return new Message(this.last(field)?.data ?? EMPTY);
  }

  messages(field: number): readonly Message[] {
    return this.fields.filter((each) => each.field === field).map(({ data }) => new Message(data));
  }
}

/**
 * Calls a container runtime through CRI instead of a kubelet: makes a pod's sandbox and nothing else.
 * A running kubelet would end sandboxes that it does not know.
 */
export class ContainerRuntime {
  private readonly session: ClientHttp2Session;

  /**
   * @param socket where the runtime listens
   * @param cgroup below which the sandboxes' groups are made. @default the cluster's
   */
  constructor(
    socket: string,
    private readonly cgroup = CGROUP,
  ) {
    this.session = connectHttp2("http://localhost", { createConnection: () => connect(socket) });
    // Each call tells of it.
    this.session.on("error", () => undefined);
  }

  close(): void {
    this.session.close();
  }

  /** @returns the id of the sandbox */
  async run({ namespace, name, uid, labels, annotations }: SandboxConfig): Promise<string> {
    const metadata = message(text(1, name), text(2, uid), text(3, namespace));
    const config = message(
      field(1, metadata),
      ...Object.entries(labels).map(([key, value]) => field(6, message(text(1, key), text(2, value)))),
      ...Object.entries(annotations).map(([key, value]) => field(7, message(text(1, key), text(2, value)))),
      field(8, message(text(1, `/${this.cgroup}`), field(2, field(1, OWN_PROCESSES)))),
    );
    // The answer has one field, the id, which is shorter than 128 bytes.
    return (await this.call("RunPodSandbox", field(1, config))).subarray(2).toString();
  }

  async remove(id: string): Promise<void> {
    await this.stop(id);
    await this.call("RemovePodSandbox", text(1, id));
  }

  /** Ends a sandbox, for which the runtime calls the CNI chain, and keeps it. */
  async stop(id: string): Promise<void> {
    await this.call("StopPodSandbox", text(1, id));
  }

  /** The runtime by its own words, such as `cri-o 1.34.0`. */
  async version(): Promise<string> {
    const answer = new Message(await this.call("Version", EMPTY));
    return `${answer.text(2)} ${answer.text(3)}`;
  }

  /** Why the runtime would have the node NotReady for its network; undefined if it would not. */
  async networkProblem(): Promise<string | undefined> {
    const conditions = new Message(await this.call("Status", EMPTY)).message(1).messages(1);
    const network = conditions.find((condition) => condition.text(1) === "NetworkReady");
    return network?.number(2) === 1 ? undefined : (network?.text(4) ?? "no condition NetworkReady");
  }

  async status(id: string): Promise<SandboxStatus> {
    const answer = new Message(await this.call("PodSandboxStatus", message(text(1, id), VERBOSE)));
    const [info = ""] = answer.messages(2).flatMap((entry) => (entry.text(1) === "info" ? [entry.text(2)] : []));
    const { runtimeSpec } = JSON.parse(info) as {
      runtimeSpec: { linux: { namespaces: readonly { readonly type: string; readonly path?: string }[] } };
    };
    const status = answer.message(1);
    return {
      // SANDBOX_READY is 0.
      isReady: status.number(3) === 0,
      address: status.message(5).text(1),
      netns: runtimeSpec.linux.namespaces.find(({ type }) => type === "network")?.path ?? "",
    };
  }

  /** A gRPC call. @throws the runtime's error */
  private call(method: string, request: Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const stream = this.session.request({
        ":method": "POST",
        ":path": `/runtime.v1.RuntimeService/${method}`,
        "content-type": "application/grpc",
        te: "trailers",
      });
      const chunks: Buffer[] = [];
      let failure = `${method} was not answered`;
      const judge = (headers: Readonly<Record<string, unknown>>) => {
        if (headers["grpc-status"] !== undefined) {
          failure = headers["grpc-status"] === "0" ? "" : `${method}: ${headers["grpc-message"]}`;
        }
      };
      stream.setTimeout(DEADLINE_MS, () => stream.close());
      stream.on("response", judge).on("trailers", judge).on("error", reject);
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("close", () => {
        if (failure === "") resolve(Buffer.concat(chunks).subarray(PREFIX));
        else reject(new Error(failure));
      });
      const prefix = Buffer.alloc(PREFIX);
      prefix.writeUInt32BE(request.length, 1);
      stream.end(Buffer.concat([prefix, request]));
    });
  }
}

/** Bytes before a message of gRPC: whether it is compressed, and its length. */
const PREFIX = 5;

const EMPTY = Buffer.alloc(0);
/** The field that asks for more than a status says. */
const VERBOSE = Buffer.from([16, 1]);
/** Containers of a pod do not see each other's processes: with that, CRI-O starts no process of its own for a sandbox. */
const OWN_PROCESSES = Buffer.from([16, 1]);
const TEXTS: Texts = {
  encode: (value) => new TextEncoder().encode(value),
  decode: (bytes) => new TextDecoder().decode(bytes),
};

const message = (...fields: readonly Buffer[]) => Buffer.concat(fields);
const text = (number: number, value: string) => field(number, Buffer.from(value));

/** A field of a protobuf message with a length: a text or another message. */
function field(number: number, value: Buffer): Buffer {
  const length = [];
  let left = value.length;
  for (; left > 127; left >>>= 7) length.push((left & 127) | 128);
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length, left]), value]);
}
