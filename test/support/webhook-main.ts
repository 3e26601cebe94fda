/**
 * A webhook server in a separate process, controlled by lines on a connection. Standard output has that
 * connection's port, and then the log.
 */
import { answerReview, type Review } from "../../controllers/multus/webhook/review";
import { type ServerLimits, WebhookServer } from "../../controllers/multus/webhook/server";
import { createLog } from "../../process/log";
import { Registry } from "../../process/metrics";
import { type Connection, listenTcp, type TlsPair } from "../../system/net";
import { start as run, write } from "../../system/program";

export type Order =
  | { readonly do: "start"; readonly pair: TlsPair; readonly limits: Partial<ServerLimits> }
  | { readonly do: "use"; readonly pair: TlsPair }
  /** Goes on with the reviews of namespace "slow". */
  | { readonly do: "release" }
  | { readonly do: "drain" | "close" | "metrics" };

const log = createLog("debug", "plain", write);
const registry = new Registry("linkerd_multus_");
let release: () => void = () => undefined;
const released = new Promise<void>((resolve) => {
  release = resolve;
});
const options = { linkerdNamespace: "linkerd", uidRangeAnnotation: "", proxyUidOffset: 0 };

async function namespace(name: string) {
  if (name === "slow") {
    log.info("waits in namespace slow");
    await released;
  }
  if (name === "unknown") throw new Error("namespace unknown: no answer");
  return { name, annotations: { "linkerd.io/multus": "enabled", "linkerd.io/inject": "enabled" } };
}

function create(limits: Partial<ServerLimits>): WebhookServer {
  const review = (review: Review) => answerReview(review, { namespace, options, log });
  return new WebhookServer({ port: 0, host: "127.0.0.1", review, log, registry, limits });
}

let server: WebhookServer | undefined;

async function start({ pair, limits }: Extract<Order, { do: "start" }>): Promise<number> {
  server = create(limits);
  await server.start(pair);
  return server.port;
}

async function obey(order: Order): Promise<unknown> {
  if (order.do === "start") return start(order);
  if (order.do === "use") server?.use(order.pair);
  if (order.do === "drain") server?.drain();
  if (order.do === "release") release();
  return order.do === "metrics" ? registry.text() : "done";
}

/** Obeys; calls back once the server was told to close, and has. */
async function serve(connection: Connection, closed: () => void): Promise<void> {
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()];
  let written = Promise.resolve();
  const answer = (value: unknown) => {
    written = written.then(() => connection.write(encoder.encode(`${JSON.stringify(value)}\n`)));
    return written;
  };
  let rest = "";
  for (let bytes = await connection.read(); bytes !== undefined; bytes = await connection.read()) {
    const lines = (rest + decoder.decode(bytes)).split("\n");
    rest = lines.pop() ?? "";
    for (const order of lines.map((line) => JSON.parse(line) as Order)) {
      void obey(order).then(answer);
      if (order.do === "close") void server?.close().then(() => answer("closed").then(closed));
    }
  }
}

run(
  () =>
    new Promise((resolve) => {
      const taken = (connection: Connection) => void serve(connection, () => resolve(0));
      void listenTcp({ host: "127.0.0.1", port: 0 }, taken).then(({ port }) => write(`${port}\n`));
    }),
);
