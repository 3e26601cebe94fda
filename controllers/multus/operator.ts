import { MULTUS_NAME, OperatorPath } from "../../cni/contract";
import { KubernetesClient } from "../../kubernetes/client";
import { readApiServer } from "../../kubernetes/in-cluster";
import { Informer, type InformerDeps } from "../../kubernetes/informer";
import { LeaderElection, type Leadership } from "../../kubernetes/leader-election";
import { resources } from "../../kubernetes/resources";
import { type ClosingTransport, httpsStreams, httpsTransport } from "../../kubernetes/transport";
import type { NamespaceObject } from "../../kubernetes/types";
import type { Clock } from "../../process/clock";
import { type Answers, type HttpServer, health, type ListenAddress, metrics, serve } from "../../process/http-server";
import type { Log } from "../../process/log";
import { randomUUID } from "../../system/crypto";
import { DefinitionController } from "./definitions/controller";
import { DefinitionWriter } from "./definitions/writer";
import { createMetrics } from "./metrics";
import { type Namespace, namespaceOf } from "./namespace";
import type { Settings } from "./settings";
import { Webhook } from "./webhook/webhook";

interface MultusOperatorDeps {
  readonly settings: Settings;
  readonly log: Log;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const ALWAYS: Leadership = { leading: true };

/** The Multus operator: definitions in namespaces that want them, annotations on their pods. */
export class MultusOperator {
  private readonly metrics = createMetrics();
  private readonly namespaces: Informer<NamespaceObject, Namespace>;
  private readonly definitions: DefinitionController;
  private readonly election: LeaderElection | undefined;
  private readonly webhook: Webhook;
  private readonly transports: ClosingTransport[] = [];

  constructor(private readonly deps: MultusOperatorDeps) {
    const { settings, log, clock, signal } = deps;
    const { registry, watchErrors } = this.metrics;
    const { podName, podNamespace } = settings;
    const server = () => readApiServer(settings.cluster);
    const transport = () => {
      const made = httpsTransport(server);
      this.transports.push(made);
      return made;
    };
    // Separate connections: writes must not delay renewals of the lease or reviews.
    const client = () => new KubernetesClient(transport());
    const failed = (resource: string) => watchErrors.inc({ resource });
    const informing: InformerDeps = { open: httpsStreams(server), clock, log, failed, signal };
    this.namespaces = new Informer(
      {
        resource: resources.namespaces,
        view: namespaceOf,
        changed: (name) => this.definitions.changed(name),
        synced: () => this.definitions.everything(),
      },
      informing,
    );
    const identity = `${podName}_${randomUUID()}`;
    const elected = () => this.definitions.everything();
    this.election = settings.leaderElect
      ? new LeaderElection(
          { name: MULTUS_NAME, namespace: podNamespace, identity, elected },
          { client: client(), clock, log },
        )
      : undefined;
    const leadership = this.election ?? ALWAYS;
    const namespaces = this.namespaces.store;
    const writer = new DefinitionWriter({ client: client(), clock, log, metrics: this.metrics, podName });
    const definitions = { ...informing, settings, namespaces, leadership, writer, metrics: this.metrics };
    this.definitions = new DefinitionController(definitions);
    this.webhook = new Webhook({ ...informing, client: client(), settings, namespaces, registry });
    const leader = { name: "leader", help: "Whether this process writes definitions." };
    registry.gauge(leader, () => (leadership.leading ? 1 : 0));
  }

  /** Runs until the signal is given. @throws if a port is in use */
  async run(): Promise<void> {
    const servers = await this.listen();
    const written = new AbortController();
    // The lease is released after the last write.
    const writing = this.definitions.write().finally(() => written.abort());
    const following = Promise.all([this.definitions.follow(), this.namespaces.run()]);
    try {
      await Promise.all([writing, following, this.election?.run(written.signal), this.webhook.run()]);
    } finally {
      for (const server of servers) server.close();
      for (const transport of this.transports) transport.close();
    }
  }

  private async listen(): Promise<readonly HttpServer[]> {
    const { settings } = this.deps;
    const { registry } = this.metrics;
    const listeners: readonly (readonly [ListenAddress | undefined, Answers])[] = [
      // A replica is ready if it can answer reviews; it need not lead.
      [
        settings.health,
        { [OperatorPath.live]: () => health(), [OperatorPath.ready]: () => health(this.webhook.problem) },
      ],
      [settings.metrics, { [OperatorPath.metrics]: () => metrics(registry) }],
    ];
    const servers: HttpServer[] = [];
    for (const [address, answers] of listeners) if (address !== undefined) servers.push(await serve(address, answers));
    return servers;
  }
}
