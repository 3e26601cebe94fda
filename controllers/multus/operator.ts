import { randomUUID } from "node:crypto";
import type { Server } from "node:http";
import type { Log } from "../../cni/log";
import { readApiServer } from "../../kubernetes/in-cluster";
import type { NamespaceObject } from "../../kubernetes/types";
import { type Answer, type Answers, type ListenAddress, serve } from "../admin";
import { renewingTransport } from "../api";
import type { Clock } from "../clock";
import { DefinitionController } from "./definitions/controller";
import { Writer } from "./definitions/writer";
import { type InformerTools, inform } from "./informer";
import { createInstruments } from "./instruments";
import { Elector, type Leadership } from "./leader/elector";
import { Namespaces } from "./namespaces";
import type { Settings } from "./settings";
import { Webhook } from "./webhook/webhook";

interface Outside {
  readonly settings: Settings;
  readonly log: Log;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const OK: Answer = { status: 200, body: "ok\n" };
const ALWAYS: Leadership = { leading: true };

/** The Multus operator: definitions in namespaces that want them, annotations on their pods. */
export class MultusOperator {
  private readonly instruments = createInstruments();
  private readonly namespaces: Namespaces;
  private readonly definitions: DefinitionController;
  private readonly elector: Elector | undefined;
  private readonly webhook: Webhook;
  private readonly informing: InformerTools;
  private readonly transports: ReturnType<typeof renewingTransport>[] = [];

  constructor(private readonly outside: Outside) {
    const { settings, log, clock, signal } = outside;
    const { instruments } = this;
    const { podName, podNamespace } = settings;
    const failed = (resource: string) => instruments.watchErrors.inc({ resource });
    this.informing = { server: this.server, send: this.transport(), clock, log, failed, signal };
    this.namespaces = new Namespaces(
      (name) => this.definitions.changed(name),
      () => this.definitions.everything(),
    );
    this.elector = settings.leaderElect
      ? new Elector({
          // A connection of its own: writes must not keep a renewal waiting.
          send: this.transport(),
          clock,
          log,
          namespace: podNamespace,
          identity: `${podName}_${randomUUID()}`,
          elected: () => this.definitions.everything(),
        })
      : undefined;
    const leadership = this.elector ?? ALWAYS;
    const { namespaces, informing } = this;
    const writer = new Writer({ send: this.transport(), clock, log, instruments, reporter: podName });
    this.definitions = new DefinitionController({ settings, namespaces, leadership, writer, informing, instruments });
    this.webhook = new Webhook({ ...informing, settings, namespaces, registry: instruments.registry });
    instruments.gauge("leader", "Whether this process writes definitions.", () => (leadership.leading ? 1 : 0));
  }

  /** Runs until the signal is given. @throws where a port is taken */
  async run(): Promise<void> {
    const servers = await this.listen();
    const retired = new AbortController();
    // The lease is given back when the last write has ended.
    const writing = this.definitions.write().finally(() => retired.abort());
    const following = Promise.all([this.definitions.follow(), this.followNamespaces()]);
    try {
      await Promise.all([writing, following, this.elector?.run(retired.signal), this.webhook.run()]);
    } finally {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
      for (const transport of this.transports) transport.close();
    }
  }

  private readonly server = () => readApiServer(this.outside.settings.cluster);

  private transport() {
    const transport = renewingTransport(this.server);
    this.transports.push(transport);
    return transport;
  }

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
    const { problem } = this.webhook;
    return problem === undefined ? OK : { status: 503, body: `${problem}\n` };
  }

  private async followNamespaces(): Promise<void> {
    const { namespaces } = this;
    await inform<NamespaceObject>(
      {
        resource: "namespaces",
        source: { path: "/api/v1/namespaces" },
        take: (notice) => namespaces.apply(notice),
      },
      this.informing,
    );
  }
}
