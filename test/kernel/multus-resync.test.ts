import { DefinitionController } from "../../controllers/multus/definitions/controller";
import { DefinitionWriter } from "../../controllers/multus/definitions/writer";
import { createMetrics } from "../../controllers/multus/metrics";
import { type Namespace, namespaceOf } from "../../controllers/multus/namespace";
import { readSettings } from "../../controllers/multus/settings";
import { KubernetesClient } from "../../kubernetes/client";
import { Store } from "../../kubernetes/store";
import { httpsStreams, httpsTransport } from "../../kubernetes/transport";
import type { NamespaceObject } from "../../kubernetes/types";
import { createLog } from "../../process/log";
import { fastClock } from "../support/controllers";
import { MultusApi, OPERATOR_NAMESPACE } from "../support/multus";
import { realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { until } from "../support/until";

suite("the operator's resync, with a clock that runs faster", realApiMissing(), () => {
  let cluster!: MultusApi;
  beforeAll(async () => {
    cluster = await MultusApi.start();
    await cluster.installMultus();
    await cluster.configure({ type: "linkerd-cni" });
  });
  afterAll(() => cluster?.close());

  test("changes that never reached the queue are found", async () => {
    const stop = new AbortController();
    const { signal } = stop;
    const { server } = cluster.api;
    const env = {
      POD_NAMESPACE: OPERATOR_NAMESPACE,
      POD_NAME: "linkerd-multus-1",
      KUBERNETES_SERVICE_HOST: server.host,
    };
    const send = httpsTransport(server);
    const metrics = createMetrics();
    const log = createLog("error", "plain", () => undefined);
    // Ten minutes in a second.
    const clock = fastClock(600);
    const namespaces = new Store<NamespaceObject, Namespace>({ view: namespaceOf });
    const controller = new DefinitionController({
      settings: readSettings([], env),
      namespaces,
      leadership: { leading: true },
      writer: new DefinitionWriter({ client: new KubernetesClient(send), clock, log, metrics, podName: env.POD_NAME }),
      ...{ open: httpsStreams(() => server), clock, log, failed: () => undefined, signal },
      metrics,
    });
    const running = Promise.all([controller.write(), controller.follow()]);
    try {
      await cluster.namespace("shop");
      namespaces.apply({ type: "LISTING" });
      namespaces.apply({ type: "SYNCED" });
      namespaces.apply({
        type: "ADDED",
        object: { metadata: { name: "shop", annotations: { "linkerd.io/multus": "enabled" } } },
      });
      await until("the definition", async () => (await cluster.definition("shop")) !== undefined);
      namespaces.apply({ type: "MODIFIED", object: { metadata: { name: "shop" } } });
      await until("its end", async () => (await cluster.definition("shop")) === undefined);
    } finally {
      stop.abort();
      await running;
      send.close();
    }
  });
});
