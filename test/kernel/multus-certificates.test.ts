import { createHash, X509Certificate } from "node:crypto";
import { Registry } from "prom-client";
import { createLog } from "../../cni/log";
import { renewingTransport } from "../../controllers/api";
import { followCertificates } from "../../controllers/multus/certificates/certificates";
import { issue } from "../../controllers/multus/certificates/issue";
import { encodeState } from "../../controllers/multus/certificates/state";
import type { TlsPair } from "../../controllers/multus/webhook/tls";
import { AdmissionApi, CONFIGURATION, SECRET, SERVICE } from "../support/admission";
import { fastClock, until } from "../support/controllers";
import { OPERATOR_NAMESPACE } from "../support/multus";
import { realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";

jest.setTimeout(180_000);

const DAY_MS = 86_400_000;
const NAMES = [`${SERVICE}.${OPERATOR_NAMESPACE}.svc`, `${SERVICE}.${OPERATOR_NAMESPACE}.svc.cluster.local`];
/** The 5 minutes in which everyone takes notice of a change are 2 s here. */
const SPEED = 150;

const text = (base64 = "") => Buffer.from(base64, "base64").toString();
const short = (pem: string) => createHash("sha256").update(pem.trim()).digest("hex").slice(0, 8);
const certificates = (pem: string) => pem.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? [];

/** What a replica does about the certificate, without the rest of it; its calendar can be turned on. */
class Replica {
  readonly log: string[] = [];
  readonly used: TlsPair[] = [];
  readonly registry = new Registry();
  private readonly stopping = new AbortController();
  private readonly done: Promise<void>;
  days = 0;

  constructor(api: AdmissionApi) {
    const server = () => api.cluster.api.server;
    const send = renewingTransport(server);
    const clock = { ...fastClock(SPEED), date: () => new Date(Date.now() + this.days * DAY_MS) };
    const webhook = {
      port: 0,
      service: SERVICE,
      configuration: "linkerd-multus",
      certificates: "self",
      certificateSecret: "linkerd-multus-webhook-tls",
      certificateDir: "",
      certificateValidityMs: 90 * DAY_MS,
    } as const;
    const outside = {
      settings: { webhook, podNamespace: OPERATOR_NAMESPACE },
      registry: this.registry,
      server,
      send,
      clock,
      log: createLog("info", "plain", (line) => this.log.push(line)),
      failed: () => undefined,
      signal: this.stopping.signal,
    };
    this.done = followCertificates(outside, (pair) => this.used.push(pair)).finally(() => send.close());
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

  afterAll(() => api?.close());

  afterEach(async () => {
    await Promise.all(replicas.splice(0).map((replica) => replica.stop()));
    await api.cluster.api.request({ method: "DELETE", path: SECRET });
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
    until(by, async () => (await bundle()).length === 1 && (await secret())["next.crt"] === undefined);

  test("two replicas make one certificate, which the API server's client would take", async () => {
    const [one, two] = start(2);
    await shown();
    expect(two?.shown).toBe(one?.shown);
    const data = await secret();
    expect(Object.keys(data).sort()).toEqual(["ca.crt", "tls.crt", "tls.key"]);
    const [leaf, ca] = [new X509Certificate(text(data["tls.crt"])), new X509Certificate(text(data["ca.crt"]))];
    expect(leaf.checkIssued(ca) && leaf.verify(ca.publicKey) && ca.ca && !leaf.ca).toBe(true);
    expect(NAMES.map((name) => leaf.checkHost(name))).toEqual(NAMES);
    await until("the caBundle", async () => (await api.caBundle()) === data["ca.crt"]);
  });

  test("after two thirds of its life the next is trusted, then served, then the old is forgotten", async () => {
    const [one, two] = start(2);
    await shown();
    const before = await secret();
    for (const replica of replicas) replica.days = 59;
    await until("a look", async () => replicas.every(({ log }) => log.length > 0));
    expect(await secret()).toEqual(before);

    for (const replica of replicas) replica.days = 61;
    const seen: string[] = [];
    const look = async () => {
      const { [`tls.crt`]: tls, [`ca.crt`]: trusted, [`next.crt`]: next } = await secret();
      const names = [tls, ...certificates(text(trusted)), next].map((pem) => (pem === undefined ? "-" : short(pem)));
      const line = names.join(" ");
      if (line !== seen.at(-1)) seen.push(line);
      return seen.length === 4;
    };
    await until("the rotation", look, 60);
    const [old, caOld, caNew, next] = seen[1]?.split(" ") ?? [];
    expect(seen).toEqual([
      `${old} ${caOld} -`,
      `${old} ${caOld} ${caNew} ${next}`,
      `${next} ${caOld} ${caNew} -`,
      `${next} ${caNew} -`,
    ]);
    await until("both", () => one?.used.length === 2 && two?.used.length === 2);
    expect(two?.shown).toBe(one?.shown);
    await until("the caBundle", async () => (await bundle()).join() === caNew);
    expect(await one?.registry.metrics()).toContain("linkerd_multus_certificate_rotations_total 1\n");
    // The others of one round are told that somebody was quicker, and say nothing.
    expect(replicas.flatMap(({ log }) => log).filter((line) => line.includes("warn"))).toEqual([]);
  });

  test("nothing is lost while the API server is away, whatever the time", async () => {
    const [one] = start(1);
    await shown();
    await settled("the start");
    await api.cluster.api.down();
    if (one !== undefined) one.days = 61;
    await until("the trouble", () => one?.log.some((line) => line.includes("cannot be looked after")) === true, 60);
    expect(one?.used).toHaveLength(1);
    await api.cluster.api.up();
    await until("the rotation", () => one?.used.length === 2, 60);
    await settled("the end");
  });

  test("one that has expired is replaced at once", async () => {
    const [one] = start(1);
    await shown();
    if (one !== undefined) one.days = 91;
    await until("another", () => one?.used.length === 2);
    await settled("the end");
    expect((await bundle()).length).toBe(1);
  });

  test("somebody's own certificate is served, as long as it is of use", async () => {
    const own = await issue(NAMES.slice(0, 1), new Date(), 30 * DAY_MS);
    const data = encodeState({ serving: own, trusted: [own.ca] });
    const [one] = start(1);
    await shown();
    await api.cluster.merge(SECRET, { data });
    await until("theirs", () => one?.shown === short(own.cert));
    await until("the caBundle", async () => (await bundle()).join() === short(own.ca));

    const stranger = await issue(["other.example"], new Date(), 30 * DAY_MS);
    await api.cluster.merge(SECRET, { data: encodeState({ serving: stranger, trusted: [stranger.ca] }) });
    await until(
      "the log",
      () => one?.log.some((line) => line.includes(`tls.crt is not valid for ${NAMES[0]}`)) === true,
    );
    await until("another", () => one?.used.length === 3);
    await settled("the end");
    expect(one?.shown).not.toBe(short(stranger.cert));
  });

  test("a webhook configuration that comes later gets its caBundle, and keeps all else", async () => {
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
