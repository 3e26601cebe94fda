/** Programs that exercise the engine's connections and keys; the first argument names one, the others (JSON) are options. */
import { generateKey, publicKeyOf, randomBytes, randomUUID, readPair, sha256, sign } from "../../../system/crypto";
import { host } from "../../../system/engine/host";
import { ready, run } from "../../../system/engine/loop";
import type { Connection, ListenAddress, TlsListener, TlsPair, TlsTarget } from "../../../system/net";
import { connectTcp, connectTls, listenTcp, listenTls } from "../../../system/net";
import { NetError } from "../../../system/net-error";

const print = (value: unknown) => void host.write(1, host.encode(`${JSON.stringify(value)}\n`));
const told = (error: unknown) => {
  const { kind, code, message } = error as NetError;
  return error instanceof NetError ? { kind, code, message } : { message };
};

/** Resident memory in KiB. */
function resident(): number {
  const file = host.open("/proc/self/statm", 0, 0);
  const bytes = new Uint8Array(100);
  const size = host.read(file, bytes);
  host.close(file);
  return Number(host.decode(bytes.subarray(0, size)).split(" ")[1]) * 4;
}

const open = new Set<Connection>();

/** Echoes until the other end closes. */
async function echo(connection: Connection): Promise<void> {
  open.add(connection);
  try {
    for (let bytes = await connection.read(); bytes !== undefined; bytes = await connection.read())
      await connection.write(bytes);
  } catch (error) {
    if (!(error instanceof NetError)) throw error;
  } finally {
    open.delete(connection);
    connection.close();
  }
}

async function readLine(): Promise<string> {
  const bytes = new Uint8Array(65_536);
  for (let size = 0; ; ) {
    await ready(0, "read");
    const taken = host.read(0, bytes.subarray(size));
    if (taken <= 0) return "";
    size += taken;
    if (bytes[size - 1] === 10) return host.decode(bytes.subarray(0, size));
  }
}

interface Order {
  readonly target: TlsTarget;
  readonly plain?: boolean;
  /** How many at a time. @default 1 */
  readonly count?: number;
  /** How many bytes each sends and gets back. @default 100 */
  readonly size?: number;
  readonly deadlineMs?: number;
  readonly abortMs?: number;
}

async function exchange(order: Order): Promise<unknown> {
  const { target, plain = false, size = 100, deadlineMs = 30_000, abortMs } = order;
  const abort = new AbortController();
  if (abortMs !== undefined) setTimeout(() => abort.abort(), abortMs);
  try {
    const connection = await (plain ? connectTcp : connectTls)(target, { deadlineMs, signal: abort.signal });
    const sent = randomBytes(size);
    const writing = connection.write(sent);
    const hash = [];
    for (let left = size; left > 0; ) {
      const bytes = await connection.read();
      if (bytes === undefined) return "ended";
      hash.push(...(size <= 100_000 ? bytes : []));
      left -= bytes.length;
    }
    await writing;
    connection.close();
    const isSame = size > 100_000 || hash.every((byte, at) => byte === sent[at]);
    return isSame ? "same" : "different";
  } catch (error) {
    return told(error);
  }
}

const functions = { generateKey, publicKeyOf, randomUUID, readPair, sha256, sign };

const programs: Readonly<Record<string, (...args: string[]) => Promise<void>>> = {
  /** Echoes; each line of input is another certificate, or asks how it is. */
  async serve(at, pair) {
    const address = JSON.parse(at ?? "") as ListenAddress;
    const identity = JSON.parse(pair ?? "null") as TlsPair | null;
    const taken = (connection: Connection) => void echo(connection);
    const listener = identity === null ? await listenTcp(address, taken) : await listenTls(address, identity, taken);
    print({ port: listener.port });
    for (let line = await readLine(); line !== ""; line = await readLine()) {
      try {
        const order = JSON.parse(line) as TlsPair | "state" | "close";
        if (order === "state") print({ open: open.size, resident: resident() });
        else if (order === "close") listener.close();
        else if ("use" in listener) (listener as TlsListener).use(order);
        if (order !== "state") print("done");
      } catch (error) {
        print(told(error));
      }
    }
  },
  async connect(order) {
    const asked = JSON.parse(order ?? "") as Order;
    print(await Promise.all(Array.from({ length: asked.count ?? 1 }, () => exchange(asked))));
  },
  async reading(target) {
    const connection = await connectTls(JSON.parse(target ?? ""), { deadlineMs: 30_000 });
    const read = connection.read();
    connection.close();
    connection.close();
    print([await read.catch(told), await connection.write(new Uint8Array(1)).catch(told)]);
  },
  async listenFails(at, pair) {
    const listen = async () =>
      pair === undefined
        ? listenTcp(JSON.parse(at ?? ""), () => {})
        : listenTls(JSON.parse(at ?? ""), JSON.parse(pair), () => {});
    print(await listen().catch(told));
  },
  async crypto(calls) {
    const made = (JSON.parse(calls ?? "") as [keyof typeof functions, ...(string | number[])[]][]).map(
      ([name, ...args]) => {
        const given = args.map((each) => (Array.isArray(each) ? Uint8Array.from(each) : each));
        try {
          const result = (functions[name] as (...all: unknown[]) => unknown)(...given);
          return result instanceof Uint8Array ? [...result] : (result ?? null);
        } catch (error) {
          return { error: (error as Error).message };
        }
      },
    );
    print(made);
  },
};

const [name = "", ...args] = host.args();
run(async () => {
  await programs[name]?.(...args);
  return 0;
});
