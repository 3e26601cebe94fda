import { createHash, X509Certificate } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { CertificateRotator } from "../../controllers/multus/certificates/rotator";
import { ServedCertificate } from "../../controllers/multus/certificates/served";
import { KubernetesClient } from "../../kubernetes/client";
import { httpsStreams, httpsTransport } from "../../kubernetes/transport";
import { createLog } from "../../process/log";
import { Registry } from "../../process/metrics";
import { authority, certificate } from "../../system/certificates.testing";
import type { TlsPair } from "../../system/net";
import { AdmissionApi, CONFIGURATION, SECRET, SERVICE, type Webhooks } from "../support/admission";
import { fastClock } from "../support/controllers";
import { metricIn } from "../support/metrics";
import { OPERATOR_NAMESPACE } from "../support/multus";
import { realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { until } from "../support/until";

const DAY_MS = 86_400_000;
const NAMES: readonly string[] = [
  `${SERVICE}.${OPERATOR_NAMESPACE}.svc`,
  `${SERVICE}.${OPERATOR_NAMESPACE}.svc.cluster.local`,
];
/** The 5 minutes in which everyone sees a change are 2 s here. */
const SPEED = 150;

const text = (base64 = "") => Buffer.from(base64, "base64").toString();
const short = (pem: string) => createHash("sha256").update(pem.trim()).digest("hex").slice(0, 8);
const certificates = (pem: string) => pem.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? [];

const path = `${CONFIGURATION}/linkerd-multus`;
const base64 = (pem: string) => Buffer.from(pem).toString("base64");

/** A certificate by an authority of its own, as users write it. */
function issue(names: readonly string[], days: number) {
  const by = authority("own", { toDay: days });
  const { cert, key } = certificate({ subject: "webhook", by, dnsNames: names, toDay: days });
  return { cert, data: { "tls.crt": base64(cert), "tls.key": base64(key) } };
}

/** Only the certificate part of a replica; its clock can be advanced. */
class Replica {
  readonly log: string[] = [];
  readonly used: TlsPair[] = [];
  readonly registry = new Registry("linkerd_multus_");
  private readonly stopping = new AbortController();
  private readonly done: Promise<void>;
  days = 0;

  constructor(api: AdmissionApi) {
    const server = () => api.cluster.api.server;
    const send = httpsTransport(server);
    const clock = { ...fastClock(SPEED), date: () => new Date(Date.now() + this.days * DAY_MS) };
    const options = {
      namespace: OPERATOR_NAMESPACE,
      secret: "linkerd-multus-webhook-tls",
      name: NAMES[0] as string,
      configuration: "linkerd-multus",
      validMs: 90 * DAY_MS,
    };
    const log = createLog("info", "plain", (line) => this.log.push(line));
    const serving = { log, registry: this.registry, use: (pair: TlsPair) => this.used.push(pair) };
    const rotator = new CertificateRotator(options, {
      open: httpsStreams(server),
      clock,
      log,
      failed: () => undefined,
      signal: this.stopping.signal,
      client: new KubernetesClient(send),
      registry: this.registry,
      served: new ServedCertificate(serving),
    });
    this.done = rotator.run().finally(() => send.close());
  }

  get shown(): string {
    return short(this.used.at(-1)?.cert ?? "");
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.done;
  }
}

suite("the webhook's certificates with a real API server, with the chart's rights", realApiMissing(), () => {
  let api!: AdmissionApi;
  const replicas: Replica[] = [];

  beforeAll(async () => {
    api = await AdmissionApi.start();
  });

  beforeEach(async () => {
    await api.emptySecret();
    await setCaBundle(await api.configuration(), null, "a-test");
  });

  const setCaBundle = ({ webhooks }: Pick<Webhooks, "webhooks">, caBundle: string | null, fieldManager: string) =>
    api.cluster.api.json({
      method: "PATCH",
      path: `${path}?fieldManager=${fieldManager}`,
      body: { webhooks: webhooks.map(({ name }) => ({ name, clientConfig: { caBundle } })) },
      contentType: "application/strategic-merge-patch+json",
    });

  afterAll(() => api?.close());

  afterEach(async () => {
    await Promise.all(replicas.splice(0).map((replica) => replica.stop()));
  });

  function start(count: number): readonly Replica[] {
    replicas.push(...Array.from({ length: count }, () => new Replica(api)));
    return replicas;
  }

  const secret = async () =>
    (await api.cluster.api.json<{ data: Readonly<Record<string, string>> }>({ path: SECRET })).data;
  const bundle = async () => certificates(text(await api.caBundle())).map(short);
  const shown = (count = replicas.length) =>
    until("certificates", () => replicas.filter(({ used }) => used.length > 0).length === count);
  const caBundleIs = (...wanted: readonly string[]) =>
    until(`the caBundle ${wanted}`, async () => (await bundle()).join() === wanted.join());

  test("two replicas make one certificate, which the API server's client would take", async () => {
    const [one, two] = start(2);
    await shown();
    expect(two?.shown).toBe(one?.shown);
    const data = await secret();
    expect(Object.keys(data).sort()).toEqual(["tls.crt", "tls.key"]);
    const leaf = new X509Certificate(text(data["tls.crt"]));
    expect(leaf.verify(leaf.publicKey) && !leaf.ca).toBe(true);
    expect(NAMES.map((name) => leaf.checkHost(name))).toEqual(NAMES);
    expect(await api.caBundle()).toBe(data["tls.crt"]);
  });

  /** Looks until all replicas serve their second certificate. @returns certificates that were served untrusted */
  async function rotation(): Promise<readonly string[]> {
    const refused: string[] = [];
    const look = async () => {
      // First the certificates that replicas serve, then those that the API server trusts.
      const serving = replicas.map(({ used }) => used.at(-1)?.cert ?? "");
      const trusted = certificates(text(await api.caBundle())).map((pem) => new X509Certificate(pem));
      const isTrusted = (leaf: X509Certificate) =>
        trusted.some((each) => each.raw.equals(leaf.raw) || (leaf.checkIssued(each) && leaf.verify(each.publicKey)));
      refused.push(...serving.filter((cert) => !isTrusted(new X509Certificate(cert))));
      return replicas.every(({ used }) => used.length === 2);
    };
    await until("the rotation", look);
    return refused;
  }

  test("after two thirds of its life another is trusted first, then served, and the former one stays trusted", async () => {
    const [one, two] = start(2);
    await shown();
    const former = one?.shown ?? "";
    const before = await secret();
    for (const replica of replicas) replica.days = 59;
    await until("a look", async () => replicas.every(({ log }) => log.length > 0));
    expect(await secret()).toEqual(before);

    for (const replica of replicas) replica.days = 61;
    expect(await rotation()).toEqual([]);
    const latest = one?.shown ?? "";
    expect([two?.shown, latest === former]).toEqual([latest, false]);
    expect(await bundle()).toEqual([latest, former]);
    expect(one?.registry.text()).toContain("linkerd_multus_certificate_rotations_total 1\n");
    // In one round the other replicas get a conflict, and log nothing.
    expect(replicas.flatMap(({ log }) => log).filter((line) => line.includes("warn"))).toEqual([]);

    for (const replica of replicas) replica.days = 122;
    await until("both", () => one?.used.length === 3 && two?.used.length === 3);
    await caBundleIs(one?.shown ?? "", latest, former);
  });

  test("a Secret that is lost gets another certificate, and clients never refuse the one of before", async () => {
    start(2);
    await shown();
    await api.emptySecret();
    expect(await rotation()).toEqual([]);
    expect(await bundle()).toHaveLength(2);
  });

  test("a replica that starts after the Secret was lost makes clients trust what the others serve", async () => {
    const [one] = start(1);
    await shown();
    await one?.stop();
    replicas.pop();
    await api.emptySecret();
    const [two] = start(1);
    await shown();
    await caBundleIs(two?.shown ?? "", one?.shown ?? "");
  });

  test("a user's certificate is taken over before it expires, and clients never refuse it", async () => {
    const given = issue(NAMES, 90);
    await api.cluster.merge(SECRET, { data: given.data });
    const [one] = start(2);
    await shown();
    expect(one?.shown).toBe(short(given.cert));
    await caBundleIs(short(given.cert));
    for (const replica of replicas) replica.days = 61;
    expect(await rotation()).toEqual([]);
    await caBundleIs(one?.shown ?? "", short(given.cert));
  });

  test("nothing is lost while the API server is away, whatever the time", async () => {
    const [one] = start(1);
    await shown();
    await api.cluster.api.down();
    if (one !== undefined) one.days = 61;
    await until(
      "the trouble",
      () => one?.log.some((line) => line.includes("cannot reconcile the webhook's certificate")) === true,
    );
    expect(one?.used).toHaveLength(1);
    await api.cluster.api.up();
    await until("the rotation", () => one?.used.length === 2);
  });

  const metric = (replica: Replica | undefined, name: string) =>
    metricIn(replica?.registry.text() ?? "", `linkerd_multus_${name}`);
  const warnings = (replica: Replica | undefined) => (replica?.log ?? []).filter((line) => line.includes("warn"));
  test("it may not create Secrets; one that is deleted is missed, and filled again when the chart makes it", async () => {
    const [one] = start(1);
    await shown();
    const collection = SECRET.slice(0, SECRET.lastIndexOf("/"));
    const token = {
      metadata: { name: "token", annotations: { "kubernetes.io/service-account.name": "default" } },
      type: "kubernetes.io/service-account-token",
    };
    const send = httpsTransport(() => api.cluster.api.server);
    const asked = await send({ method: "POST", path: collection, body: token, deadlineMs: 10_000 });
    send.close();
    expect(asked.status).toBe(403);
    await api.cluster.api.json({ method: "DELETE", path: SECRET });
    await until("the log", () =>
      warnings(one).some((line) => line.includes("does not exist: install the chart again")),
    );
    expect(one?.used).toHaveLength(1);
    await api.emptySecret();
    await until("another", () => one?.used.length === 2);
  });

  test("a caBundle that another program keeps changing is corrected less and less often, and counted", async () => {
    const [one] = start(1);
    await shown();
    const ours = (await secret())["tls.crt"];
    await until("the caBundle", async () => (await api.caBundle()) === ours);
    let theirs = 0;
    let isOver = false;
    const undoCorrections = async () => {
      while (!isOver) {
        if ((await api.caBundle()) === ours) {
          await setCaBundle(await api.configuration(), base64("another's"), "their-operator");
          theirs += 1;
        }
        await sleep(1);
      }
    };
    const begin = performance.now();
    const undoing = undoCorrections();
    await until("eight corrections of theirs", () => theirs >= 8).finally(() => {
      isOver = true;
    });
    await undoing;
    // Two were corrected at once, and each later one after a pause twice as long.
    const pausesMs = (1 + 2 + 4 + 8 + 16) * 1_000;
    expect((performance.now() - begin) * SPEED).toBeGreaterThan(pausesMs);
    expect(metric(one, "ca_bundle_contested")).toBe(1);
    expect(metric(one, "ca_bundle_corrections_total")).toBeGreaterThanOrEqual(7);
    expect(warnings(one)).toEqual([expect.stringContaining("a caBundle that their-operator keeps changing")]);
    await until(
      "an uncontested caBundle",
      async () => (await api.caBundle()) === ours && metric(one, "ca_bundle_contested") === 0,
    );
  });

  test("a caBundle that an annotation has cert-manager set is left alone", async () => {
    await api.cluster.merge(path, { metadata: { annotations: { "cert-manager.io/inject-ca-from": "a/b" } } });
    const before = await api.caBundle();
    const [one] = start(1);
    await shown();
    await until("the log", () => warnings(one).length > 0);
    expect(warnings(one)).toEqual([expect.stringContaining("annotation cert-manager.io/inject-ca-from, which lets")]);
    expect(metric(one, "ca_bundle_contested")).toBe(1);
    expect([await api.caBundle(), metric(one, "ca_bundle_corrections_total")]).toEqual([before, 0]);
    await api.cluster.merge(path, { metadata: { annotations: { "cert-manager.io/inject-ca-from": null } } });
    await until("the caBundle", async () => (await api.caBundle()) === (await secret())["tls.crt"]);
    await until("an uncontested caBundle", () => metric(one, "ca_bundle_contested") === 0);
  });

  test("one that has expired is replaced at once", async () => {
    const [one] = start(1);
    await shown();
    if (one !== undefined) one.days = 91;
    await until("another", () => one?.used.length === 2);
    await until("the caBundle", async () => (await bundle())[0] === one?.shown);
  });

  test("a user's certificate is served while it is usable", async () => {
    const own = issue(NAMES.slice(0, 1), 30);
    const [one] = start(1);
    await shown();
    await api.cluster.merge(SECRET, { data: own.data });
    await until("theirs", () => one?.shown === short(own.cert));
    await until("the caBundle", async () => (await bundle())[0] === short(own.cert));

    const foreign = issue(["other.example"], 30);
    await api.cluster.merge(SECRET, { data: foreign.data });
    await until(
      "the log",
      () => one?.log.some((line) => line.includes(`tls.crt is not valid for ${NAMES[0]}`)) === true,
    );
    await until("another", () => one?.used.length === 3);
    expect(one?.shown).not.toBe(short(foreign.cert));
  });

  test("a later webhook configuration gets its caBundle, and keeps everything else", async () => {
    const { metadata: _, ...configuration } = await api.configuration();
    await api.cluster.api.json({ method: "DELETE", path });
    start(1);
    await shown();
    const webhooks = configuration.webhooks.map(({ clientConfig: { caBundle, ...clientConfig }, ...rest }) => ({
      ...rest,
      clientConfig,
    }));
    const body = { ...configuration, metadata: { name: "linkerd-multus" }, webhooks };
    await api.cluster.api.json({ method: "POST", path: CONFIGURATION, body });
    await until("the caBundle", async () => (await bundle()).length === 1);
    const after = (await api.configuration()).webhooks.map(
      ({ clientConfig: { caBundle, ...clientConfig }, ...rest }) => ({ ...rest, clientConfig }),
    );
    expect(after).toEqual(webhooks);
  });
});
