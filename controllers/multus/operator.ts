import type { Server } from "node:http";
import type { Log } from "../../cni/log";
import { readApiServer } from "../../kubernetes/in-cluster";
import type { NamespaceObject } from "../../kubernetes/types";
import { type Answer, type Answers, type ListenAddress, serve } from "../admin";
import { renewingTransport } from "../api";
import type { Clock } from "../clock";
import { inform } from "./informer";
import { createInstruments } from "./instruments";
import { Namespaces } from "./namespaces";
import type { Settings } from "./settings";

interface Outside {
  readonly settings: Settings;
  readonly log: Log;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const OK: Answer = { status: 200, body: "ok\n" };

/** The Multus operator: definitions in namespaces that want them, annotations on their pods. */
export class MultusOperator {
  private readonly instruments = createInstruments();
  private readonly namespaces = new Namespaces();
  private readonly send: ReturnType<typeof renewingTransport>;

  constructor(private readonly outside: Outside) {
    this.send = renewingTransport(this.server);
  }

  /** Runs until the signal is given. @throws where a port is taken */
  async run(): Promise<void> {
    const servers = await this.listen();
    try {
      await this.follow();
    } finally {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
      this.send.close();
    }
  }

  private readonly server = () => readApiServer(this.outside.settings.cluster);

  private async listen(): Promise<readonly Server[]> {
    const { health, metrics } = this.outside.settings;
    const { registry } = this.instruments;
    const listeners: readonly (readonly [ListenAddress | undefined, Answers])[] = [
      [health, { "/healthz": () => OK, "/readyz": () => this.readiness() }],
      [metrics, { "/metrics": async () => ({ status: 200, body: await registry.metrics() }) }],
    ];
    const servers: Server[] = [];
    for (const [address, answers] of listeners) if (address !== undefined) servers.push(await serve(address, answers));
    return servers;
  }

  /** Whether the webhook can answer; who leads does not matter. */
  private readiness(): Answer {
    return this.namespaces.synced ? OK : { status: 503, body: "the namespaces have not been listed yet\n" };
  }

  private async follow(): Promise<void> {
    const { clock, log, signal } = this.outside;
    const failed = (resource: string) => this.instruments.watchErrors.inc({ resource });
    const tools = { server: this.server, send: this.send, clock, log, failed, signal };
    await inform<NamespaceObject>(
      {
        resource: "namespaces",
        source: { path: "/api/v1/namespaces" },
        take: (notice) => this.namespaces.apply(notice),
      },
      tools,
    );
  }
}
