import { AdmissionApi, type Created, SECRET } from "../support/admission";
import { CNI_NAMESPACE, OPERATOR_NAMESPACE, OperatorProcess } from "../support/multus";
import { freePort } from "../support/ports";
import { buildPrograms } from "../support/program";
import { realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { until } from "../support/until";

const MULTUS = "linkerd.io/multus";
const INJECT = "linkerd.io/inject";
const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const UID = "config.linkerd.io/proxy-uid";
const RANGE = "openshift.io/sa.scc.uid-range";
const on = { [MULTUS]: "enabled", [INJECT]: "enabled" };
const attached = { ...on, [NETWORKS]: "linkerd-cni" };

suite("the operator's webhook, called by a real API server, with the chart's rights", realApiMissing(), () => {
  let api!: AdmissionApi;
  let replicas: readonly OperatorProcess[] = [];

  beforeAll(async () => {
    [api] = await Promise.all([AdmissionApi.start(), buildPrograms()]);
    await api.namespace("shop", on);
    await api.namespace("plain");
    await api.namespace("openshift", { ...on, [RANGE]: "1000680000/10000" });
    await api.namespace("odd", { ...on, [RANGE]: "many" });
    await api.namespace("linkerd");
  });

  afterAll(async () => {
    await api?.close();
  });

  async function start(count: number, ...args: readonly string[]): Promise<void> {
    const ports = await Promise.all(Array.from({ length: count }, freePort));
    replicas = await Promise.all(
      ports.map((port, index) =>
        OperatorProcess.start(api.cluster, `linkerd-multus-${index}`, [`-webhook-port=${port}`, ...args]),
      ),
    );
    for (const replica of replicas) {
      await until("the webhook", async () => (await replica.ask("/readyz").catch(() => undefined))?.status === 200);
    }
    api.service.ports = ports;
    // The API server learns of the authority a moment later.
    await until("the first pod", async () => (await api.create("plain", {}, { dryRun: true })).status === 201);
  }

  async function stop(): Promise<void> {
    await Promise.all(replicas.map((replica) => replica.end()));
    replicas = [];
  }

  const stored = async (namespace: string) =>
    (await api.cluster.api.json<{ items: readonly object[] }>({ path: `/api/v1/namespaces/${namespace}/pods` })).items;
  const created = (answer: Created) => {
    expect(answer).toMatchObject({ status: 201 });
    return answer.annotations;
  };

  describe("by one replica", () => {
    beforeAll(() => start(1));

    afterAll(stop);

    test("pods get what they and their namespace request", async () => {
      const component = { "linkerd.io/control-plane-component": "destination" };
      const cases: readonly (readonly [string, object, object])[] = [
        ["plain", {}, {}],
        ["plain", { annotations: on }, attached],
        ["shop", {}, attached],
        ["shop", { annotations: { [NETWORKS]: "a, b@eth1" } }, { ...on, [NETWORKS]: "a, b@eth1,linkerd-cni" }],
        ["openshift", {}, { ...attached, [UID]: "1000682102" }],
        ["odd", {}, attached],
        ["linkerd", { labels: component }, { [NETWORKS]: "linkerd-cni" }],
      ];
      for (const [namespace, metadata, annotations] of cases) {
        expect(created(await api.create(namespace, metadata))).toEqual(annotations);
      }
      await until("the log of the range", () => replicas[0]?.said(`${RANGE} on namespace odd`) === true);
    });

    test("a namespace that was created a moment ago counts", async () => {
      for (const index of Array.from({ length: 10 }, (_, each) => each)) {
        await api.namespace(`new-${index}`, on);
        expect(created(await api.create(`new-${index}`, {}))).toEqual(attached);
      }
    });

    test("only clients that send networks that cannot be extended get a warning", async () => {
      const answer = await api.create("shop", { annotations: { [NETWORKS]: '{"name":"a"}' } });
      expect(created(answer)).toEqual({ ...on, [NETWORKS]: '{"name":"a"}' });
      expect(answer.warnings.join()).toContain("left as it is, without linkerd-cni");
      expect((await api.create("shop", {})).warnings).toEqual([]);
    });

    test("dry-run shows the result without side effects", async () => {
      const before = (await stored("shop")).length;
      expect(created(await api.create("shop", {}, { dryRun: true }))).toEqual(attached);
      expect(await stored("shop")).toHaveLength(before);
    });

    test("an update counts until a node has the pod, and then is left alone", async () => {
      const { name } = await api.create("shop", {});
      const pending = await api.annotate("shop", name, { [NETWORKS]: "a" });
      expect(pending.annotations).toEqual({ ...on, [NETWORKS]: "a,linkerd-cni" });
      const target = { apiVersion: "v1", kind: "Node", name: "node-1" };
      const path = `/api/v1/namespaces/shop/pods/${name}/binding`;
      await api.cluster.api.json({ method: "POST", path, body: { metadata: { name }, target } });
      const running = await api.annotate("shop", name, { [NETWORKS]: "b", [MULTUS]: null, note: "x" });
      expect(running).toMatchObject({ status: 200, annotations: { [INJECT]: "enabled", [NETWORKS]: "b", note: "x" } });
      expect(running.annotations[MULTUS]).toBeUndefined();
    });

    test("an unusable Secret is replaced", async () => {
      const data = { "tls.crt": Buffer.from("no certificate").toString("base64") };
      await api.cluster.merge(SECRET, { data });
      await until("the log", () => replicas[0]?.said("is not usable and is replaced: ") === true);
      const read = () => api.cluster.api.json<{ data: Record<string, string> }>({ path: SECRET });
      await until("the Secret", async () => (await read()).data["tls.crt"] !== data["tls.crt"]);
      expect((await api.create("shop", {})).status).toBe(201);
    });
  });

  test("during an outage pods cannot be created in selected namespaces, but existing ones can be changed", async () => {
    await start(1);
    const { name } = await api.create("shop", { finalizers: ["batch.kubernetes.io/job-tracking"] });
    await stop();
    expect(await api.create("shop", {})).toMatchObject({ status: 500 });
    expect(await api.annotate("shop", name, { note: "x" })).toMatchObject({ status: 200 });
    const path = `/api/v1/namespaces/shop/pods/${name}`;
    await api.cluster.merge(path, { metadata: { finalizers: null } });
    // Pods that the operator and its nodes wait for.
    for (const namespace of [CNI_NAMESPACE, OPERATOR_NAMESPACE]) {
      expect(await api.create(namespace, {})).toMatchObject({ status: 201 });
    }
  });

  describe("by two replicas", () => {
    afterEach(stop);

    /** Creates pods, so many at a time, until told to stop; each has to be admitted and annotated. */
    function load(atOnce: number) {
      const answers: Created[] = [];
      let going = true;
      const one = async () => {
        while (going) answers.push(await api.create("shop", {}, { dryRun: true }));
      };
      const done = Promise.all(Array.from({ length: atOnce }, one));
      const end = async () => {
        going = false;
        await done;
      };
      return { answers, end };
    }

    test("not one of 500 pods fails while certificates rotate", async () => {
      // A life of 5 minutes: what is trusted has 5 s to settle.
      await start(2, "-webhook-certificate-validity-hours=0.0834");
      const rotations = async () =>
        Promise.all(replicas.map((replica) => replica.metric("certificate_rotations_total")));
      const { answers, end } = load(4);
      const bundles = new Set<string | undefined>();
      for (const round of [1, 2, 3]) {
        await api.emptySecret();
        await until(`rotation ${round}`, async () => {
          bundles.add(await api.caBundle());
          return (await rotations()).every((count) => count >= round);
        });
      }
      await until("500 pods", () => answers.length >= 500);
      await end();
      const failed = answers.filter(
        ({ status, annotations }) => status !== 201 || annotations[NETWORKS] !== "linkerd-cni",
      );
      expect(failed.map(({ text }) => text)).toEqual([]);
      // Both of the old and the new, and each alone.
      expect(bundles.size).toBeGreaterThanOrEqual(4);
      console.log(`${answers.length} pods admitted during ${await rotations()} rotations, 2 replicas`);
    });

    test("a stopping operator answers requests until its end", async () => {
      await start(2);
      const { answers, end } = load(4);
      const [first] = replicas;
      await until("a few pods", () => answers.length > 20);
      const ended = first?.end();
      await until("not ready", async () => (await first?.ask("/readyz"))?.status === 503);
      // Its endpoint goes.
      api.service.ports = api.service.ports.slice(1);
      expect(await ended).toBe(0);
      const soFar = answers.length;
      await until("more pods", () => answers.length > soFar + 20);
      await end();
      expect(answers.filter(({ status }) => status !== 201).map(({ text }) => text)).toEqual([]);
    });
  });
});
