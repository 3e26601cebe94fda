/** A webhook server in a process of its own, told by lines on its standard input what to do. */
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import type { TlsPair } from "../../controllers/multus/certificates/certificate";
import { answerReview } from "../../controllers/multus/webhook/admission-review";
import { type ServerLimits, WebhookServer } from "../../controllers/multus/webhook/server";
import { createLog } from "../../process/log";
import { Registry } from "../../process/metrics";

export type Order =
  | { readonly do: "start"; readonly pair: TlsPair; readonly limits: Partial<ServerLimits> }
  | { readonly do: "use"; readonly pair: TlsPair }
  /** Goes on with the reviews of namespace "slow". */
  | { readonly do: "release" }
  | { readonly do: "drain" | "close" | "metrics" };

const log = createLog("debug", "plain", (line) => void process.stderr.write(line));
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
  const review = (document: unknown) => answerReview(document, { namespace, options, log });
  return new WebhookServer({ port: 0, host: "127.0.0.1", review, log, registry, limits });
}

let server: WebhookServer | undefined;

async function start({ pair, limits }: Extract<Order, { do: "start" }>): Promise<number> {
  server = create(limits);
  await server.start(pair);
  return server.port;
}

async function close(): Promise<void> {
  await server?.close();
  process.stdout.write('"closed"\n');
  await delay(10);
  process.exit();
}

async function obey(order: Order): Promise<unknown> {
  if (order.do === "start") return start(order);
  if (order.do === "use") server?.use(order.pair);
  if (order.do === "drain") server?.drain();
  if (order.do === "release") release();
  if (order.do === "close") void close();
  return order.do === "metrics" ? registry.text() : "done";
}

createInterface({ input: process.stdin }).on("line", (line) => {
  void obey(JSON.parse(line) as Order).then((answer) => process.stdout.write(`${JSON.stringify(answer)}\n`));
});
