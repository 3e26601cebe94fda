import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { CGROUP } from "./cgroups";

/** A pod's sandbox, as a kubelet asks for it. */
export interface SandboxConfig {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const DEADLINE_MS = 60_000;

/**
 * A container runtime by its own interface, in place of a kubelet: a pod's sandbox and nothing else.
 * A kubelet that runs would end sandboxes of which it knows nothing.
 */
export class ContainerRuntime {
  private readonly session: ClientHttp2Session;

  /** @param socket where the runtime listens */
  constructor(socket: string) {
    this.session = connectHttp2("http://localhost", { createConnection: () => connect(socket) });
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
      field(8, text(1, `/${CGROUP}`)),
    );
    // The answer has one field, the id, which is shorter than 128 bytes.
    return (await this.call("RunPodSandbox", field(1, config))).subarray(2).toString();
  }

  async remove(id: string): Promise<void> {
    await this.call("StopPodSandbox", text(1, id));
    await this.call("RemovePodSandbox", text(1, id));
  }

  /** A call of gRPC. @throws what the runtime answers, but for success */
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

const message = (...fields: readonly Buffer[]) => Buffer.concat(fields);
const text = (number: number, value: string) => field(number, Buffer.from(value));

/** A field of a protobuf message with a length: a text or another message. */
function field(number: number, value: Buffer): Buffer {
  const length = [];
  let left = value.length;
  for (; left > 127; left >>>= 7) length.push((left & 127) | 128);
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length, left]), value]);
}
