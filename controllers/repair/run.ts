import { AdminPath, Label } from "../../cni/contract";
import { KubernetesClient } from "../../kubernetes/client";
import { EventRecorder } from "../../kubernetes/events";
import { readApiServer } from "../../kubernetes/in-cluster";
import { inform } from "../../kubernetes/informer";
import { resources } from "../../kubernetes/resources";
import { httpsStreams, httpsTransport } from "../../kubernetes/transport";
import type { Clock } from "../../process/clock";
import { health, metrics as metricsAnswer, serve } from "../../process/http-server";
import type { Log } from "../../process/log";
import { stanzaFromText } from "../stanza";
import { Auditor } from "./audit";
import { RepairController } from "./controller";
import { injectorProblem } from "./injector";
import { createMetrics } from "./metrics";
import { PodActions } from "./pod-actions";
import { probeHttp, probeTcp } from "./probes";
import type { Settings } from "./settings";

interface RepairDeps {
  readonly settings: Settings;
  readonly log: Log;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Runs the repair controller of one node until the signal is given. @throws if the admin port is in use */
export async function runRepairController({ settings, log, clock, signal }: RepairDeps): Promise<void> {
  const server = () => readApiServer(settings.cluster);
  const send = httpsTransport(server);
  const client = new KubernetesClient(send);
  const metrics = createMetrics();

  const reporter = { controller: "linkerd-cni-repair-controller", instance: settings.podName };
  const recorder = new EventRecorder(reporter, { client, clock });
  const actions = new PodActions({ client, recorder, clock, log, metrics });
  const { installerReady: url, waitForNri } = settings;
  const installerReady = async () => url === undefined || probeHttp(url);
  const controller = new RepairController({
    ...{ settings, actions, installerReady, metrics, clock, log, signal },
    injectorProblem: () => injectorProblem(client),
  });
  const { pods } = controller;

  const found = controller.notRedirected.bind(controller);
  const auditor =
    settings.stanza === undefined
      ? undefined
      : new Auditor({
          ...{ pods, client, stanza: stanzaFromText(settings.stanza), probe: probeTcp, waitForNri, found },
          ...{ clock, log, signal },
        });

  const meshedPods = {
    resource: resources.pods,
    // Every meshed pod has this label, whatever injected its proxy.
    labelSelector: Label.controlPlaneNamespace,
    // Completed pods stay for days. A pod ended by its validator is reported.
    fieldSelector: `spec.nodeName=${settings.nodeName},status.phase!=Succeeded`,
    take: pods.apply.bind(pods),
  };

  const admin = await serve(settings.admin, {
    [AdminPath.live]: () => health(),
    [AdminPath.ready]: () => health(pods.synced ? undefined : "the pods have not been listed yet"),
    [AdminPath.metrics]: () => metricsAnswer(metrics.registry),
  });
  log.info(`watches the pods of node ${settings.nodeName} that have label ${Label.controlPlaneNamespace}`);
  try {
    const failed = () => metrics.watchErrors.inc();
    await Promise.all([
      inform(meshedPods, { open: httpsStreams(server), clock, log, signal, failed }),
      controller.run(),
      auditor?.run(),
    ]);
  } finally {
    admin.close();
    send.close();
  }
}
