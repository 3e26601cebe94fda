/** A real kube-apiserver and etcd on the loopback, for one test file. */
import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApiServer } from "../../kubernetes/api-server";
import { type ApiRequest, httpsTransport } from "../../kubernetes/transport";
import { authority } from "../../system/certificates.testing";
import { paths } from "../cluster/paths";
import { freePort } from "./ports";
import { which } from "./requirements";
import { until } from "./until";

const EXECUTABLE = join(paths.binaries, "kube-apiserver");

/** What this machine lacks for one, in words. */
export function realApiMissing(): string | undefined {
  if (which("etcd") === undefined) return "etcd";
  return existsSync(EXECUTABLE) ? undefined : "kube-apiserver: npm run cluster builds it";
}

/** An object that the API server can be given. */
export interface ApiObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

/** API path at which objects of a kind are created. */
export function collectionOf({ apiVersion, kind, metadata: { namespace } }: ApiObject): string {
  const group = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const plural = `${kind.toLowerCase().replace(/y$/, "ie")}s`;
  return `${group}${namespace === undefined ? "" : `/namespaces/${namespace}`}/${plural}`;
}

/** @default deadlineMs: a minute, since a busy machine pauses for many seconds */
type AdminRequest = Omit<ApiRequest, "deadlineMs"> & Partial<Pick<ApiRequest, "deadlineMs">>;
const DEADLINE_MS = 60_000;

/** A definition of a kind, as far as it tells where the API server serves its objects. */
interface Definition extends ApiObject {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly plural: string };
    readonly versions: readonly { readonly name: string }[];
  };
}

const ended = (child: ChildProcess) => new Promise((resolve) => child.once("exit", resolve));

export class RealApi {
  private readonly directory = mkdtempSync(join(tmpdir(), "api-"));
  private etcd: ChildProcess | undefined;
  private apiServer: ChildProcess | undefined;
  private send: ReturnType<typeof httpsTransport> | undefined;
  private flags: readonly string[] = [];
  /** etcd's address. */
  private etcdUrl = "";

  private constructor(
    /** The API server, with an administrator's token. */
    readonly admin: ApiServer,
    /** The same, with the service account's token. */
    readonly server: ApiServer,
  ) {}

  /** Starts both; `account` is the user of the second token. @param flags additional flags of the API server */
  static async start(account: string, flags: readonly string[] = []): Promise<RealApi> {
    const { cert, key } = authority("test API server", { names: ["127.0.0.1"] });
    const place = { host: "127.0.0.1", port: await freePort(), ca: cert };
    const api = new RealApi({ ...place, token: "admin" }, { ...place, token: "account" });
    const accounts = generateKeyPairSync("ec", {
      namedCurve: "P-256",
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
      publicKeyEncoding: { type: "spki", format: "pem" },
    });
    const write = (name: string, content: string) => {
      writeFileSync(join(api.directory, name), content);
      return join(api.directory, name);
    };
    const clients = `http://127.0.0.1:${await freePort()}`;
    api.etcdUrl = clients;
    const peers = `http://127.0.0.1:${await freePort()}`;
    api.flags = [
      `--etcd-servers=${clients}`,
      "--bind-address=127.0.0.1",
      `--secure-port=${place.port}`,
      `--tls-cert-file=${write("tls.crt", cert)}`,
      `--tls-private-key-file=${write("tls.key", key)}`,
      `--token-auth-file=${write("tokens", `admin,admin,1,system:masters\naccount,${account},2,\n`)}`,
      "--service-account-issuer=https://kubernetes.default.svc",
      `--service-account-key-file=${write("accounts.pub", accounts.publicKey)}`,
      `--service-account-signing-key-file=${write("accounts.key", accounts.privateKey)}`,
      "--authorization-mode=RBAC",
      // Without a controller manager there are no service accounts for pods.
      "--disable-admission-plugins=ServiceAccount",
      "--service-cluster-ip-range=10.96.0.0/16",
      "--feature-gates=MutatingAdmissionPolicy=true",
      "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
      ...flags,
    ];
    const urls = [
      `--listen-client-urls=${clients}`,
      `--advertise-client-urls=${clients}`,
      `--listen-peer-urls=${peers}`,
      `--initial-advertise-peer-urls=${peers}`,
      `--initial-cluster=default=${peers}`,
    ];
    api.etcd = spawn("etcd", [`--data-dir=${join(api.directory, "etcd")}`, "--unsafe-no-fsync", ...urls], {
      stdio: "ignore",
    });
    await api.up();
    return api;
  }

  /** Process ids of the running servers. */
  get pids(): { readonly etcd: number; readonly apiServer: number } {
    return { etcd: this.etcd?.pid ?? 0, apiServer: this.apiServer?.pid ?? 0 };
  }

  /** Starts the API server, and waits until it is of use. */
  async up(): Promise<void> {
    this.apiServer = spawn(EXECUTABLE, this.flags, { stdio: "ignore" });
    this.send = httpsTransport(this.admin, { connectMs: DEADLINE_MS });
    await until("the API server", async () => (await this.request({ path: "/readyz" })).status === 200);
  }

  /** Stops the API server; etcd keeps the objects. */
  async down(): Promise<void> {
    const { apiServer } = this;
    this.send?.close();
    if (apiServer === undefined || apiServer.exitCode !== null || apiServer.signalCode !== null) return;
    apiServer.kill("SIGKILL");
    await ended(apiServer);
  }

  /** Has etcd forget every revision but the last, as an API server does every five minutes. */
  async compact(): Promise<void> {
    const ask = async (verb: string, body: object) => {
      const response = await fetch(`${this.etcdUrl}/v3/kv/${verb}`, { method: "POST", body: JSON.stringify(body) });
      if (!response.ok) throw new Error(`etcd, ${verb}: ${response.status}: ${await response.text()}`);
      return (await response.json()) as { header: { revision: string } };
    };
    const { header } = await ask("range", { key: "AA==" });
    await ask("compaction", { revision: header.revision, physical: true });
  }

  async close(): Promise<void> {
    await this.down();
    this.etcd?.kill("SIGKILL");
    if (this.etcd !== undefined) await ended(this.etcd);
    rmSync(this.directory, { recursive: true });
  }

  /** Asks as the administrator. */
  async request(call: AdminRequest) {
    if (this.send === undefined) throw new Error("not started");
    return this.send({ deadlineMs: DEADLINE_MS, ...call });
  }

  /** Sends a request as the administrator. @throws if it is refused */
  async json<T = object>(call: AdminRequest): Promise<T> {
    const { status, body } = await this.request(call);
    if (status >= 300) throw new Error(`${call.method ?? "GET"} ${call.path}: ${status}: ${body}`);
    return JSON.parse(body) as T;
  }

  /** Creates objects, as the administrator. @throws if one is refused */
  async create(...objects: readonly ApiObject[]): Promise<void> {
    for (const object of objects) await this.json({ method: "POST", path: collectionOf(object), body: object });
  }

  /** Creates definitions, and waits until their kinds are served. */
  async define(...definitions: readonly Definition[]): Promise<void> {
    await this.create(...definitions);
    for (const { spec } of definitions) {
      const path = `/apis/${spec.group}/${spec.versions[0]?.name}/${spec.names.plural}`;
      await until(path, async () => (await this.request({ path })).status === 200);
    }
  }
}
