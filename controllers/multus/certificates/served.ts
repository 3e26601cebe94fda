import type { Log } from "../../../process/log";
import type { Counter, Registry } from "../../../process/metrics";
import { readPair } from "../../../system/crypto";
import type { TlsPair } from "../../../system/net";

/** A certificate that can be served, with its key. */
export interface Servable extends TlsPair {
  /** In milliseconds since 1970. */
  readonly validFrom: number;
  /** In milliseconds since 1970. */
  readonly validTo: number;
}

/** @throws Error if the pair cannot be served, or not for this DNS name; the message does not quote the key */
export function servable({ cert, key }: TlsPair, name: string): Servable {
  const { isForName, validFrom, validTo } = readPair(cert, key, name);
  if (!isForName) throw new Error(`tls.crt is not valid for ${name}`);
  return { cert, key, validFrom, validTo };
}

interface ServedCertificateDeps {
  readonly log: Log;
  readonly registry: Registry;
  /** Uses the certificate for new connections. */
  readonly use: (pair: TlsPair) => void;
}

/** The served certificate of this process. */
export class ServedCertificate {
  private served: Servable | undefined;
  private readonly rotations: Counter;

  constructor(private readonly deps: ServedCertificateDeps) {
    const { registry } = deps;
    const expiry = {
      name: "certificate_expiry_timestamp_seconds",
      help: "When the webhook's certificate expires, in seconds since 1970; 0 while there is none.",
    };
    registry.gauge(expiry, () => (this.served?.validTo ?? 0) / 1000);
    this.rotations = registry.counter({
      name: "certificate_rotations_total",
      help: "Times that the webhook's certificate was replaced by another.",
    });
  }

  get current(): Servable | undefined {
    return this.served;
  }

  serve(pair: Servable): void {
    const before = this.served;
    this.served = pair;
    if (before?.cert === pair.cert && before.key === pair.key) return;
    if (before !== undefined) this.rotations.inc();
    this.deps.log.info("serves a certificate", { validTo: new Date(pair.validTo).toISOString() });
    this.deps.use(pair);
  }
}
