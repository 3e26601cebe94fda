import { Counter, Gauge, type Registry } from "prom-client";
import type { Log } from "../../../cni/log";
import type { TlsPair } from "../webhook/tls";

interface Tools {
  readonly log: Log;
  readonly registry: Registry;
  /** Takes the certificate for connections that come from now on. */
  readonly use: (pair: TlsPair) => void;
}

/** The certificate that this process shows its clients. */
export class Shown<T extends TlsPair & { readonly validTo: number }> {
  private pair: T | undefined;
  private readonly rotations: Counter;

  constructor(private readonly tools: Tools) {
    const registers = [tools.registry];
    const validTo = () => this.pair?.validTo ?? 0;
    new Gauge({
      name: "linkerd_multus_certificate_expiry_timestamp_seconds",
      help: "When the webhook's certificate expires, in seconds since 1970; 0 while there is none.",
      registers,
      collect() {
        this.set(validTo() / 1000);
      },
    });
    this.rotations = new Counter({
      name: "linkerd_multus_certificate_rotations_total",
      help: "Times that the webhook's certificate was replaced by another.",
      registers,
    });
  }

  get current(): T | undefined {
    return this.pair;
  }

  show(pair: T): void {
    const before = this.pair;
    this.pair = pair;
    if (before?.cert === pair.cert && before.key === pair.key) return;
    if (before !== undefined) this.rotations.inc();
    this.tools.log.info("serves a certificate", { validTo: new Date(pair.validTo).toISOString() });
    this.tools.use(pair);
  }
}
