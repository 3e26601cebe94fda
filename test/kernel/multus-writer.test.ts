import { DefinitionController } from "../../controllers/multus/definitions/controller";
import { definitionOf } from "../../controllers/multus/definitions/definition";
import { DefinitionWriter, Stale } from "../../controllers/multus/definitions/writer";
import { createMetrics } from "../../controllers/multus/metrics";
import { type Namespace, namespaceOf } from "../../controllers/multus/namespace";
import { readSettings } from "../../controllers/multus/settings";
import { KubernetesClient } from "../../kubernetes/client";
import { ApiError } from "../../kubernetes/errors";
import { Store } from "../../kubernetes/store";
import { type ApiRequest, httpsStreams, httpsTransport, type Transport } from "../../kubernetes/transport";
import type { NamespaceObject } from "../../kubernetes/types";
import { systemClock } from "../../process/clock";
import { createLog } from "../../process/log";
import { CRD, type Definition, MultusApi } from "../support/multus";
import { realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { until } from "../support/until";

suite("writes that meet others' on a real API server", realApiMissing(), () => {
  let cluster!: MultusApi;
  let transport: ReturnType<typeof httpsTransport>;
  let writer: DefinitionWriter;
  const metrics = createMetrics();
  const log = createLog("error", "plain", () => undefined);

  beforeAll(async () => {
    cluster = await MultusApi.start();
    await cluster.installMultus();
    transport = httpsTransport(cluster.api.server);
    writer = writerBy(transport);
  });

  const writerBy = (send: Transport, counting = metrics) => {
    const client = new KubernetesClient(send);
    return new DefinitionWriter({ client, clock: systemClock, log, metrics: counting, podName: "linkerd-multus-1" });
  };

  afterAll(async () => {
    transport?.close();
    await cluster?.close();
  });

  /** The definition, as the operator sees it. */
  async function seen(namespace: string) {
    const found = await cluster.definition(namespace);
    if (found === undefined) throw new Error(`no definition in ${namespace}`);
    return definitionOf(found);
  }

  async function created(namespace: string): Promise<ReturnType<typeof definitionOf>> {
    await cluster.namespace(namespace);
    await writer.create(namespace, "{}");
    return seen(namespace);
  }

  const annotate = (namespace: string) =>
    cluster.merge(cluster.definitionPath(namespace), { metadata: { annotations: { seen: "1" } } });

  test.each([
    ["says otherwise", "raced", { spec: { config: '{"type":"other"}' } }],
    ["says the same", "same", { spec: { config: "{}" } }],
    ["says nothing, so that Multus reads a file of the node", "silent", {}],
  ])("a definition that another client has just created is not taken over: it %s", async (_, name, content) => {
    await cluster.namespace(name);
    const metadata = { name: "linkerd-cni", labels: { team: "a" } };
    const body = { apiVersion: "k8s.cni.cncf.io/v1", kind: CRD.spec.names.kind, metadata, ...content };
    let before: Definition | undefined;
    const outrun = writerBy(async (call) => {
      if (call.method === "PATCH" && before === undefined) {
        await cluster.api.json({ method: "POST", path: cluster.definitionsPath(name), body });
        before = await cluster.definition(name);
      }
      return transport(call);
    });
    const same = async () => {
      const after = (await cluster.definition(name))!;
      expect([after.spec, after.metadata.labels, after.metadata.managedFields]).toEqual([
        before?.spec,
        before?.metadata.labels,
        before?.metadata.managedFields,
      ]);
    };
    await expect(outrun.create(name, "{}")).rejects.toThrow(Stale);
    await same();
    await expect(outrun.create(name, "{}")).rejects.toThrow(Stale);
    await same();
  });

  test("our definition is recognized without an answer or a watch event", async () => {
    await created("unanswered");
    await annotate("unanswered");
    const before = await cluster.definition("unanswered");
    await expect(writer.create("unanswered", "{}")).rejects.toThrow(Stale);
    expect(await cluster.definition("unanswered")).toEqual(before);
    expect(await seen("unanswered")).toMatchObject({ ours: true, config: "{}" });
  });

  test("one that was handed over a moment before is neither changed nor deleted", async () => {
    const before = await created("handed-over");
    const labels = { "app.kubernetes.io/managed-by": "team-a" };
    await cluster.merge(cluster.definitionPath("handed-over"), { metadata: { labels } });
    await expect(writer.update("handed-over", before, "changed")).rejects.toThrow(Stale);
    await expect(writer.delete("handed-over", before)).rejects.toThrow(Stale);
    expect(await seen("handed-over")).toMatchObject({ ours: false, config: "{}" });
  });

  test("a recreated definition is not the one that was judged", async () => {
    const before = await created("anew");
    await cluster.api.json({ method: "DELETE", path: cluster.definitionPath("anew") });
    await expect(writer.update("anew", before, "changed")).rejects.toThrow(Stale);
    await writer.delete("anew", before);
    await writer.create("anew", "{}");
    await expect(writer.delete("anew", before)).rejects.toThrow(Stale);
    expect((await seen("anew")).uid).not.toBe(before.uid);
  });

  test("a change of another field by others causes another reconciliation, not an error", async () => {
    const before = await created("annotated");
    await annotate("annotated");
    await expect(writer.update("annotated", before, "changed")).rejects.toThrow(Stale);
    await writer.update("annotated", await seen("annotated"), "changed");
    expect((await seen("annotated")).config).toBe("changed");
    expect(metrics.registry.text()).not.toMatch(/^linkerd_multus_errors_total\{/m);
  });

  test("a terminating namespace is not an error, a deleted one is", async () => {
    const before = await created("ending");
    await cluster.api.json({ method: "DELETE", path: "/api/v1/namespaces/ending" });
    await writer.delete("ending", before);
    // The API server's admission learns of it by a watch of its own.
    const refused = () =>
      writer.create("ending", "{}").then(
        () => undefined,
        (error: Error) => error,
      );
    let error: Error | undefined;
    await until("the refusal", async () => {
      error = await refused();
      if (error === undefined) await writer.delete("ending", await seen("ending"));
      return error !== undefined;
    });
    expect(error).toBeInstanceOf(Stale);
    await expect(writer.create("never-was", "{}")).rejects.toThrow(ApiError);
    await expect(writer.create("never-was", "{}")).rejects.not.toThrow(Stale);
    const errors = metrics.registry.text().match(/^linkerd_multus_errors_total\{.*$/gm);
    expect(errors).toEqual(['linkerd_multus_errors_total{operation="apply"} 2']);
  });

  test("an Event of one suffix is published once", async () => {
    const { uid } = await created("told");
    const regarding = {
      apiVersion: "k8s.cni.cncf.io/v1",
      kind: CRD.spec.names.kind,
      namespace: "told",
      name: "linkerd-cni",
      uid,
    };
    const spec = { reason: "Test", action: "Testing", type: "Warning", note: "x".repeat(2_000) } as const;
    for (const suffix of ["a", "a", "b"]) await writer.publish(regarding, spec, suffix);
    expect((await cluster.events("told")).map(({ note }) => note.length)).toEqual([1_024, 1_024]);
  });

  test("its rights end at the definitions of its name", async () => {
    await created("confined");
    const status = async (call: Omit<ApiRequest, "deadlineMs">) =>
      (await transport({ ...call, deadlineMs: 5_000 })).status;
    const other = `${cluster.definitionsPath("confined")}/macvlan`;
    const body = { apiVersion: "k8s.cni.cncf.io/v1", kind: CRD.spec.names.kind, metadata: { name: "macvlan" } };
    const contentType = "application/apply-patch+yaml";
    expect(await status({ method: "PATCH", path: `${other}?fieldManager=linkerd-multus`, body, contentType })).toBe(
      403,
    );
    expect(await status({ method: "POST", path: cluster.definitionsPath("confined"), body })).toBe(403);
    expect(await status({ method: "DELETE", path: other })).toBe(403);
    expect(await status({ path: cluster.definitionsPath() })).toBe(403);
    expect(await status({ path: `${cluster.definitionsPath()}?fieldSelector=metadata.name%3Dlinkerd-cni` })).toBe(200);
  });

  test("no definition is deleted because of a watch that is behind", async () => {
    for (const name of ["enabled-since", "disabled"]) await created(name);
    await cluster.annotate("enabled-since", "enabled");
    await cluster.configure({ type: "linkerd-cni" });
    const stop = new AbortController();
    const informing = {
      ...{ open: httpsStreams(() => cluster.api.server), clock: systemClock, log },
      ...{ failed: () => undefined, signal: stop.signal },
    };
    const namespaces = new Store<NamespaceObject, Namespace>({ view: namespaceOf });
    const environment = { POD_NAMESPACE: "ops", POD_NAME: "one", KUBERNETES_SERVICE_HOST: "127.0.0.1" };
    const settings = readSettings([], environment);
    const leadership = { leading: true };
    const ours = createMetrics();
    const deps = { settings, namespaces, leadership, writer: writerBy(transport, ours), ...informing, metrics: ours };
    const controller = new DefinitionController(deps);
    namespaces.apply({ type: "LISTING" });
    for (const name of ["enabled-since", "disabled"]) {
      namespaces.apply({ type: "LISTED", object: { metadata: { name } } });
    }
    namespaces.apply({ type: "SYNCED" });
    const run = Promise.all([controller.write(), controller.follow()]);
    try {
      await until("the deletion", async () => (await cluster.definition("disabled")) === undefined);
      await until("the rest", async () => ours.registry.text().includes("linkerd_multus_queue_depth 0\n"));
      expect(await cluster.definition("enabled-since")).toBeDefined();
    } finally {
      stop.abort();
      await run;
    }
  });
});
