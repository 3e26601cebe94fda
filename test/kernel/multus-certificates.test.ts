import { createHash, X509Certificate } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServingCertificate, TlsPair } from "../../controllers/multus/certificates/certificate";
import { createAuthority, issueCertificate } from "../../controllers/multus/certificates/issue";
import { CertificateRotator } from "../../controllers/multus/certificates/rotator";
import { ServedCertificate } from "../../controllers/multus/certificates/served";
import { KubernetesClient } from "../../kubernetes/client";
import { httpsStreams, httpsTransport } from "../../kubernetes/transport";
import { createLog } from "../../process/log";
import { Registry } from "../../process/metrics";
import { AdmissionApi, CONFIGURATION, SECRET, SERVICE } from "../support/admission";
import { fastClock, until } from "../support/controllers";
import { metricIn } from "../support/metrics";
import { OPERATOR_NAMESPACE } from "../support/multus";
import { realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";

jest.setTimeout(180_000);

const DAY_MS = 86_400_000;
const NAMES = [`${SERVICE}.${OPERATOR_NAMESPACE}.svc`, `${SERVICE}.${OPERATOR_NAMESPACE}.svc.cluster.local`];
/** The 5 minutes in which everyone sees a change are 2 s here. */
const SPEED = 150;

const text = (base64 = "") => Buffer.from(base64, "base64").toString();
const short = (pem: string) => createHash("sha256").update(pem.trim()).digest("hex").slice(0, 8);
const certificates = (pem: string) => pem.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? [];

const base64 = (pem: string) => Buffer.from(pem).toString("base64");

/** A certificate by an authority of its own. */
async function issue(names: readonly string[], days: number) {
  const by = await createAuthority(new Date(), days * DAY_MS);
  return { ...(await issueCertificate(names, by, new Date(), days * DAY_MS)), ca: by.cert };
}

/** The Secret's data as users write it: without the authority's key. */
const withoutCaKey = ({ cert, key, ca }: TlsPair & { readonly ca: string }) => ({
  "tls.crt": base64(cert),
  "tls.key": base64(key),
  "ca.crt": base64(ca),
});

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
      service: SERVICE,
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
      served: new ServedCertificate<ServingCertificate>(serving),
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

  beforeEach(() => api.emptySecret());

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
    until("certificates", () => replicas.filter(({ used }) => used.length > 0).length === count, 60);
  const settled = (by: string) =>
    until(by, async () => (await bundle()).length === 1 && certificates(text((await secret())["ca.crt"])).length === 1);

  test("two replicas make one certificate, which the API server's client would take", async () => {
    const [one, two] = start(2);
    await shown();
    expect(two?.shown).toBe(one?.shown);
    const data = await secret();
    expect(Object.keys(data).sort()).toEqual(["ca.crt", "ca.key", "tls.crt", "tls.key"]);
    const [leaf, ca] = [new X509Certificate(text(data["tls.crt"])), new X509Certificate(text(data["ca.crt"]))];
    expect(leaf.checkIssued(ca) && leaf.verify(ca.publicKey) && ca.ca && !leaf.ca).toBe(true);
    expect(NAMES.map((name) => leaf.checkHost(name))).toEqual(NAMES);
    await until("the caBundle", async () => (await api.caBundle()) === data["ca.crt"]);
  });

  /** Watches the Secret until it has had so many states: what is served, and what is trusted. */
  async function states(count: number, begin: () => void): Promise<readonly string[]> {
    const seen: string[] = [];
    const look = async () => {
      const { "tls.crt": tls, "ca.crt": trusted } = await secret();
      const line = [text(tls), ...certificates(text(trusted))].map(short).join(" ");
      if (line !== seen.at(-1)) seen.push(line);
      return seen.length === count;
    };
    await look();
    begin();
    await until("the rotation", look, 60);
    return seen;
  }

  test("after two thirds of its life it is renewed, and clients need not trust anything new", async () => {
    const [one, two] = start(2);
    await shown();
    const before = await secret();
    for (const replica of replicas) replica.days = 59;
    await until("a look", async () => replicas.every(({ log }) => log.length > 0));
    expect(await secret()).toEqual(before);

    for (const replica of replicas) replica.days = 61;
    await until("both", () => one?.used.length === 2 && two?.used.length === 2, 60);
    expect(two?.shown).toBe(one?.shown);
    const { "tls.crt": tls, "tls.key": key, ...authority } = await secret();
    expect(short(text(tls))).toBe(one?.shown);
    expect([tls, key]).not.toEqual([before["tls.crt"], before["tls.key"]]);
    expect(authority).toEqual({ "ca.crt": before["ca.crt"], "ca.key": before["ca.key"] });
    expect(await api.caBundle()).toBe(before["ca.crt"]);
    expect(one?.registry.text()).toContain("linkerd_multus_certificate_rotations_total 1\n");
    // In one round the other replicas get a conflict, and log nothing.
    expect(replicas.flatMap(({ log }) => log).filter((line) => line.includes("warn"))).toEqual([]);
  });

  test("once in ten years another authority is trusted first, signs the next certificate, and then is the only one", async () => {
    start(2);
    await shown();
    const { "tls.crt": tls, "ca.crt": ca } = await secret();
    const [old, caOld] = [short(text(tls)), short(text(ca))];
    const decade = 3_650 - 60;
    // It was renewed a while ago; what the authority would sign now would outlive it.
    const renewed = await issueCertificate(
      NAMES,
      { cert: text(ca), key: text((await secret())["ca.key"]) },
      new Date(Date.now() + (decade - 61) * DAY_MS),
      90 * DAY_MS,
    );
    for (const replica of replicas) replica.days = decade - 50;
    await api.cluster.merge(SECRET, { data: { "tls.crt": base64(renewed.cert), "tls.key": base64(renewed.key) } });
    await until("the renewed one", () => replicas.every((replica) => replica.shown === short(renewed.cert)));
    const seen = await states(4, () => {
      for (const replica of replicas) replica.days = decade;
    });
    const [, , caNew] = seen[1]?.split(" ") ?? [];
    const next = seen[3]?.split(" ")[0];
    const kept = short(renewed.cert);
    expect(old).not.toBe(kept);
    expect(seen).toEqual([
      `${kept} ${caOld}`,
      `${kept} ${caOld} ${caNew}`,
      `${next} ${caOld} ${caNew}`,
      `${next} ${caNew}`,
    ]);
    await until("the caBundle", async () => (await bundle()).join() === caNew);
    await until("both", () => replicas.every((replica) => replica.shown === next));
  });

  test("a Secret without the authority's key is taken over, and clients never refuse the certificate", async () => {
    const given = await issue(NAMES, 90);
    await api.cluster.merge(SECRET, { data: withoutCaKey(given) });
    const [one] = start(2);
    await shown();
    expect(one?.shown).toBe(short(given.cert));
    await until("the caBundle", async () => (await bundle()).includes(short(given.ca)));
    for (const replica of replicas) replica.days = 61;
    let refused = "";
    const trusts = async () => {
      // First the certificates that replicas serve, then the authorities that the API server trusts.
      const serving = replicas.map(({ used }) => new X509Certificate(used.at(-1)?.cert ?? ""));
      const trusted = certificates(text(await api.caBundle())).map((pem) => new X509Certificate(pem));
      const isTrusted = (leaf: X509Certificate) =>
        trusted.some((ca) => leaf.checkIssued(ca) && leaf.verify(ca.publicKey));
      if (!serving.every(isTrusted)) refused = serving.map(String).join();
      return replicas.every(({ used }) => used.length === 2) && trusted.length === 1;
    };
    await until("the rotation", trusts, 60);
    expect(refused).toBe("");
    expect(Object.keys(await secret()).sort()).toEqual(["ca.crt", "ca.key", "tls.crt", "tls.key"]);
  });

  test("nothing is lost while the API server is away, whatever the time", async () => {
    const [one] = start(1);
    await shown();
    await settled("the start");
    await api.cluster.api.down();
    if (one !== undefined) one.days = 61;
    await until(
      "the trouble",
      () => one?.log.some((line) => line.includes("cannot reconcile the webhook's certificate")) === true,
      60,
    );
    expect(one?.used).toHaveLength(1);
    await api.cluster.api.up();
    await until("the rotation", () => one?.used.length === 2, 60);
    await settled("the end");
  });

  const metric = (replica: Replica | undefined, name: string) =>
    metricIn(replica?.registry.text() ?? "", `linkerd_multus_${name}`);
  const warnings = (replica: Replica | undefined) => (replica?.log ?? []).filter((line) => line.includes("warn"));
  const path = `${CONFIGURATION}/linkerd-multus`;

  test("it may not create Secrets; one that is deleted is missed, and filled again when the chart makes it", async () => {
    const [one] = start(1);
    await shown();
    await settled("the start");
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
    await until("another", () => one?.used.length === 2, 60);
    await settled("the end");
  });

  test("a caBundle that another program keeps changing is corrected less and less often, and counted", async () => {
    const [one] = start(1);
    await shown();
    const ours = (await secret())["ca.crt"];
    await until("the caBundle", async () => (await api.caBundle()) === ours);
    let theirs = 0;
    let isOver = false;
    const undoCorrections = async () => {
      while (!isOver) {
        if ((await api.caBundle()) === ours) {
          const webhooks = (await api.configuration()).webhooks.map(({ name }) => ({
            name,
            clientConfig: { caBundle: base64("another's") },
          }));
          await api.cluster.api.json({
            method: "PATCH",
            path: `${path}?fieldManager=their-operator`,
            body: { webhooks },
            contentType: "application/strategic-merge-patch+json",
          });
          theirs += 1;
        }
        await sleep(1);
      }
    };
    const begin = performance.now();
    const undoing = undoCorrections();
    await until("eight corrections of theirs", () => theirs >= 8, 60).finally(() => {
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
      60,
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
    await until("the caBundle", async () => (await api.caBundle()) === (await secret())["ca.crt"]);
    await until("an uncontested caBundle", () => metric(one, "ca_bundle_contested") === 0);
  });

  test("one that has expired is replaced at once", async () => {
    const [one] = start(1);
    await shown();
    if (one !== undefined) one.days = 91;
    await until("another", () => one?.used.length === 2);
    await settled("the end");
    expect((await bundle()).length).toBe(1);
  });

  test("a user's certificate is served while it is usable", async () => {
    const own = await issue(NAMES.slice(0, 1), 30);
    const data = withoutCaKey(own);
    const [one] = start(1);
    await shown();
    await api.cluster.merge(SECRET, { data });
    await until("theirs", () => one?.shown === short(own.cert));
    await until("the caBundle", async () => (await bundle()).join() === short(own.ca));

    const foreign = await issue(["other.example"], 30);
    await api.cluster.merge(SECRET, { data: withoutCaKey(foreign) });
    await until(
      "the log",
      () => one?.log.some((line) => line.includes(`tls.crt is not valid for ${NAMES[0]}`)) === true,
    );
    await until("another", () => one?.used.length === 3);
    await settled("the end");
    expect(one?.shown).not.toBe(short(foreign.cert));
  });

  test("a later webhook configuration gets its caBundle, and keeps everything else", async () => {
    const path = `${CONFIGURATION}/linkerd-multus`;
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
