import { CNI_NAMESPACE, CRD, MultusApi, OperatorProcess } from "../support/multus";
import { buildPrograms } from "../support/program";
import { realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { until } from "../support/until";

/** Fields that the chart writes, and one of the future. */
const STANZA = {
  name: "linkerd-cni",
  type: "linkerd-cni",
  log_level: "info",
  kubernetes: { kubeconfig: "__KUBECONFIG_FILEPATH__", other: 1 },
  linkerd: {
    "incoming-proxy-port": 4143,
    "outgoing-proxy-port": 4140,
    "proxy-uid": 2102,
    "proxy-gid": 2103,
    "ports-to-redirect": [],
    "inbound-ports-to-ignore": ["4191", "4190"],
    "subnets-to-ignore": ["10.0.0.0/8"],
    "outbound-subnets-to-ignore": ["10.1.0.0/16"],
    "iptables-mode": "native",
    ipv6: true,
    simulate: false,
    "use-wait-flag": false,
  },
  "pod-lookup": "auto",
  "a-field-of-the-future": { deep: [1, null, "x"] },
};
const KUBECONFIG = "/var/lib/cni/ZZZ-linkerd-cni-kubeconfig";
const WANTED = { ...STANZA, cniVersion: "1.0.0", kubernetes: { kubeconfig: KUBECONFIG, other: 1 } };

suite("the operator's definitions with a real API server, with the chart's rights", realApiMissing(), () => {
  let cluster!: MultusApi;
  let operator: OperatorProcess | undefined;

  beforeAll(async () => {
    [cluster] = await Promise.all([MultusApi.start(), buildPrograms()]);
  });

  afterEach(async () => {
    await operator?.retire();
    operator = undefined;
  });

  afterAll(async () => {
    await cluster?.close();
  });

  async function start(): Promise<OperatorProcess> {
    const args = [`-cni-kubeconfig=${KUBECONFIG}`, "-requests-per-second", "100", "--log-level=debug"];
    operator = await OperatorProcess.start(cluster, "linkerd-multus-1", args);
    return operator;
  }

  const made = (namespace: string) =>
    until(`the definition in ${namespace}`, async () => (await cluster.definition(namespace)) !== undefined);
  const gone = (namespace: string) =>
    until(`no definition in ${namespace}`, async () => (await cluster.definition(namespace)) === undefined);
  const eventsOf = async (namespace: string, reason: string) =>
    (await cluster.events(namespace)).filter((event) => event.reason === reason);

  test("waits for Multus' kind and for the ConfigMap, reports each once, and then continues", async () => {
    await cluster.namespace("shop", "enabled");
    await cluster.namespace("plain");
    await cluster.namespace("linkerd", "disabled");
    const { log } = await start();
    const waits = () => log.filter((line) => line.includes("waits for Multus")).length;
    await until("the first attempt", () => waits() > 0);
    await cluster.installMultus();
    const invalid = () => eventsOf(CNI_NAMESPACE, "LinkerdMultusConfigInvalid");
    await until("the Event", async () => (await invalid()).length > 0);
    expect(await invalid()).toEqual([
      expect.objectContaining({
        note: expect.stringContaining("ConfigMap linkerd-cni/linkerd-cni-config does not exist"),
        reportingController: "linkerd-multus",
        regarding: expect.objectContaining({ kind: "ConfigMap", name: "linkerd-cni-config" }),
      }),
    ]);
    await cluster.configure(STANZA);
    await made("shop");
    // The control plane's namespace has one, whatever its annotation says.
    await made("linkerd");
    expect(await cluster.config("shop")).toEqual(WANTED);
    expect(await cluster.definition("plain")).toBeUndefined();
    const { metadata } = (await cluster.definition("shop"))!;
    expect(metadata.labels).toEqual({ "app.kubernetes.io/managed-by": "linkerd-multus" });
    expect(metadata.managedFields).toEqual([
      expect.objectContaining({ manager: "linkerd-multus", operation: "Apply" }),
    ]);
    expect(waits()).toBe(1);
  });

  test("corrects changed and deleted definitions, and keeps additions of others", async () => {
    await start();
    const path = cluster.definitionPath("shop");
    const merge = { metadata: { annotations: { team: "a" }, labels: { tier: "b" } }, spec: { config: "{}" } };
    await cluster.merge(path, merge);
    await until("the repair", async () => (await cluster.config("shop"))?.["type"] === "linkerd-cni");
    const { metadata, spec } = (await cluster.definition("shop"))!;
    expect(JSON.parse(spec.config)).toEqual(WANTED);
    expect([metadata.annotations, metadata.labels?.["tier"]]).toEqual([{ team: "a" }, "b"]);
    for (const namespace of ["shop", "linkerd"]) {
      const before = (await cluster.definition(namespace))!.metadata.uid;
      await cluster.api.json({ method: "DELETE", path: cluster.definitionPath(namespace) });
      await made(namespace);
      expect((await cluster.definition(namespace))!.metadata.uid).not.toBe(before);
    }
  });

  test("backs off if another client keeps undoing its corrections", async () => {
    const running = await start();
    await cluster.namespace("fought-over", "enabled");
    for (let round = 0; round < 5; round++) {
      await until("the repair", async () => (await cluster.config("fought-over"))?.["type"] === "linkerd-cni");
      await cluster.merge(cluster.definitionPath("fought-over"), { spec: { config: "{}" } });
    }
    await until("its word", () => running.said("keeps changing the definition"));
    expect(await running.metric("contests_total")).toBeGreaterThanOrEqual(1);
    await until("the last repair", async () => (await cluster.config("fought-over"))?.["type"] === "linkerd-cni");
    await until("all to be counted", async () => (await running.metric("applies_total")) === 6);
  });

  test("another owner's definition does not change, with one Event, also over restarts", async () => {
    await cluster.namespace("foreign");
    const metadata = { name: "linkerd-cni", labels: { "app.kubernetes.io/managed-by": "Helm" } };
    const body = {
      apiVersion: CRD.spec.group.concat("/v1"),
      kind: CRD.spec.names.kind,
      metadata,
      spec: { config: '{"type":"other"}' },
    };
    await cluster.api.json({ method: "POST", path: cluster.definitionsPath("foreign"), body });
    const before = (await cluster.definition("foreign"))!;
    await start();
    await cluster.annotate("foreign", "enabled");
    const told = () => eventsOf("foreign", "LinkerdMultusForeignDefinition");
    await until("the Event", async () => (await told()).length > 0);
    await cluster.merge(cluster.definitionPath("foreign"), { metadata: { annotations: { seen: "1" } } });
    await operator?.retire();
    const next = await start();
    await until("the next one's word", () => next.said("is left as it is"));
    // Sees the deletion of the annotation after all that came before.
    await cluster.annotate("foreign", "disabled");
    await cluster.namespace("after-foreign", "enabled");
    await made("after-foreign");
    expect((await told()).map(({ regarding }) => regarding)).toEqual([
      expect.objectContaining({ kind: "NetworkAttachmentDefinition", name: "linkerd-cni", uid: before.metadata.uid }),
    ]);
    const after = (await cluster.definition("foreign"))!;
    expect([after.spec, after.metadata.labels]).toEqual([before.spec, metadata.labels]);
  });

  test("a change of the ConfigMap reaches every definition; a malformed one changes none, and is reported", async () => {
    const namespaces = ["shop", "linkerd", "plain", "after-foreign"];
    const running = await start();
    await cluster.annotate("plain", "enabled");
    const changed = { ...STANZA, linkerd: { ...STANZA.linkerd, "proxy-uid": 2200 } };
    const uids = (names: readonly string[]) =>
      Promise.all(
        names.map(async (name) => ((await cluster.config(name)) as Partial<typeof STANZA>)?.linkerd?.["proxy-uid"]),
      );
    const follow = (uid: number) =>
      until(`all to follow to ${uid}`, async () => (await uids(namespaces)).every((each) => each === uid));
    await cluster.configure(changed);
    await follow(2200);

    await cluster.configure('{"linkerd":{"incoming-proxy-port":"http"}}');
    const told = async () =>
      (await eventsOf(CNI_NAMESPACE, "LinkerdMultusConfigInvalid")).filter(({ note }) => note.includes("key cni_"));
    await until("the Event", async () => (await told()).length === 1);
    expect((await told())[0]?.note).toContain('linkerd.incoming-proxy-port: "http" is not a whole number from 1');
    await cluster.namespace("meanwhile", "enabled");
    await cluster.merge(cluster.definitionPath("shop"), { spec: { config: "{}" } });
    // Definitions that are no longer wanted are still deleted, and in order.
    await cluster.annotate("plain", "disabled");
    await gone("plain");
    expect(await running.metric("config_valid")).toBe(0);
    expect(await uids(["linkerd", "after-foreign"])).toEqual([2200, 2200]);
    expect((await cluster.definition("shop"))?.spec.config).toBe("{}");
    expect(await cluster.definition("meanwhile")).toBeUndefined();

    await cluster.annotate("plain", "enabled");
    await cluster.configure(STANZA);
    await follow(2102);
    await made("meanwhile");
    expect(await running.metric("config_valid")).toBe(1);
  });

  test("changes during an outage of the watch, too old to be watched, are listed again", async () => {
    const running = await start();
    await until("the lead", () => running.said("leads: "));
    await cluster.namespace("seen", "enabled");
    await made("seen");
    running.child.kill("SIGSTOP");
    // Cuts its connections, so that what follows does not wait for it in a buffer.
    await cluster.api.down();
    await cluster.api.up();
    await cluster.annotate("shop", null);
    await cluster.namespace("unseen", "enabled");
    await cluster.api.json({ method: "DELETE", path: cluster.definitionPath("linkerd") });
    // The next server's memory begins after these changes.
    await cluster.api.down();
    await cluster.api.up();
    running.child.kill("SIGCONT");
    await made("unseen");
    await made("linkerd");
    await gone("shop");
    await until("its word", () => running.log.some((line) => /watch of .*: 410/.test(line)));
  });

  test("when Multus is removed and installed again, all definitions exist again", async () => {
    const running = await start();
    await until("the lead", () => running.said("leads: "));
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${CRD.metadata.name}`;
    await cluster.api.json({ method: "DELETE", path });
    await until("the kind to be gone", async () => (await cluster.api.request({ path })).status === 404);
    await until("its word", () => running.said("waits for Multus"));
    await cluster.installMultus();
    await until("the definitions", async () => (await cluster.definition("linkerd")) !== undefined);
    await made("unseen");
  });
});
