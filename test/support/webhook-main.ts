/** A webhook server in a process of its own, told by lines on its standard input what to do. */
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { Registry } from "prom-client";
import { createLog } from "../../cni/log";
import { answerReview } from "../../controllers/multus/webhook/admission";
import { WebhookServer } from "../../controllers/multus/webhook/server";
import type { TlsPair } from "../../controllers/multus/webhook/tls";

export type Order =
  | { readonly do: "start" | "use"; readonly pair: TlsPair }
  /** Goes on with the reviews of namespace "slow". */
  | { readonly do: "release" }
  | { readonly do: "drain" | "close" | "metrics" };

const log = createLog("debug", "plain", (line) => void process.stderr.write(line));
const registry = new Registry();
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

const server = new WebhookServer({
  port: 0,
  host: "127.0.0.1",
  review: (document) => answerReview(document, { namespace, options, log }),
  log,
  registry,
  limits: { handshakeMs: 1_000, bodyMs: 1_000, idleMs: 3_000, closeMs: 30_000 },
});

async function obey(order: Order): Promise<unknown> {
  if (order.do === "start") await server.start(order.pair);
  if (order.do === "use") server.use(order.pair);
  if (order.do === "drain") server.drain();
  if (order.do === "release") release();
  if (order.do === "metrics") return registry.metrics();
  if (order.do === "close") {
    void server.close().then(async () => {
      process.stdout.write('"closed"\n');
      await delay(10);
      process.exit();
    });
  }
  return server.port;
}

createInterface({ input: process.stdin }).on("line", (line) => {
  void obey(JSON.parse(line) as Order).then((answer) => process.stdout.write(`${JSON.stringify(answer)}\n`));
});
