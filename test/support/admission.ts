/** A real API server that calls the operator's webhook, as the chart has it. */
import { request } from "node:https";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { App, Chart } from "cdk8s";
import { LinkerdMultus } from "../../constructs/multus/linkerd-multus";
import { MultusApi, OPERATOR_NAMESPACE } from "./multus";

export const CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
export const SERVICE = "linkerd-multus-webhook";
export const SECRET = `/api/v1/namespaces/${OPERATOR_NAMESPACE}/secrets/linkerd-multus-webhook-tls`;

export interface Webhooks {
  readonly metadata: { readonly managedFields: readonly { readonly manager: string }[] };
  readonly webhooks: readonly { readonly name: string; readonly clientConfig: { readonly caBundle?: string } }[];
}

type Annotations = Readonly<Record<string, string>>;

/** The API server's answer to a pod. */
export interface Created {
  readonly status: number;
  readonly warnings: readonly string[];
  readonly name: string;
  readonly annotations: Annotations;
  readonly text: string;
}

/** Distributes connections among the replicas in turn, as a Service does. */
class ServiceStub {
  private readonly server: Server;
  private next = 0;
  ports: readonly number[] = [];

  private constructor() {
    this.server = createServer((client) => this.hand(client));
  }

  static async start(): Promise<ServiceStub> {
    const stub = new ServiceStub();
    await new Promise<void>((resolve) => stub.server.listen(0, "localhost", resolve));
    return stub;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  close(): void {
    this.server.close();
  }

  private hand(client: Socket): void {
    const port = this.ports[this.next++ % this.ports.length] ?? 1;
    const replica = connect(port, "127.0.0.1");
    client.on("error", () => replica.destroy()).pipe(replica);
    replica.on("error", () => client.destroy()).pipe(client);
  }
}

/** The API with the webhook's configuration, and a Service that leads to the replicas. */
export class AdmissionApi {
  private constructor(
    readonly cluster: MultusApi,
    readonly service: ServiceStub,
  ) {}

  static async start(): Promise<AdmissionApi> {
    const made = new AdmissionApi(await MultusApi.start(), await ServiceStub.start());
    await made.prepare();
    return made;
  }

  private async prepare(): Promise<void> {
    const { api } = this.cluster;
    const chart = new Chart(new App(), "chart");
    new LinkerdMultus(chart, "multus", { namespace: OPERATOR_NAMESPACE, webhook: { failurePolicy: "Fail" } });
    const objects = chart.toJson() as { kind: string; webhooks: { clientConfig: { service: { port: number } } }[] }[];
    const found = objects.find(({ kind }) => kind === "MutatingWebhookConfiguration");
    if (found === undefined) throw new Error("the chart has no MutatingWebhookConfiguration");
    for (const { clientConfig } of found.webhooks) clientConfig.service.port = this.service.port;
    await api.json({ method: "POST", path: CONFIGURATION, body: found });
    const spec = { type: "ExternalName", externalName: "localhost" };
    const path = `/api/v1/namespaces/${OPERATOR_NAMESPACE}/services`;
    await api.json({ method: "POST", path, body: { metadata: { name: SERVICE }, spec } });
  }

  async namespace(name: string, annotations: Annotations = {}): Promise<void> {
    const body = { metadata: { name, annotations } };
    await this.cluster.api.json({ method: "POST", path: "/api/v1/namespaces", body });
  }

  /** Has the Secret be as the chart makes it. */
  async emptySecret(): Promise<void> {
    const { api } = this.cluster;
    await api.request({ method: "DELETE", path: SECRET });
    const name = SECRET.slice(SECRET.lastIndexOf("/") + 1);
    await api.create({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace: OPERATOR_NAMESPACE } });
  }

  configuration(): Promise<Webhooks> {
    return this.cluster.api.json<Webhooks>({ path: `${CONFIGURATION}/linkerd-multus` });
  }

  async caBundle(): Promise<string | undefined> {
    return (await this.configuration()).webhooks[0]?.clientConfig.caBundle;
  }

  /** Creates a pod, or has it created for show. */
  create(namespace: string, metadata: object, more: { readonly spec?: object; readonly dryRun?: boolean } = {}) {
    const path = `/api/v1/namespaces/${namespace}/pods${more.dryRun === true ? "?dryRun=All" : ""}`;
    const named = { generateName: "cart-", ...metadata };
    const spec = { containers: [{ name: "main", image: "none" }], ...more.spec };
    return this.send("POST", path, { apiVersion: "v1", kind: "Pod", metadata: named, spec });
  }

  /** Changes a pod's annotations; null removes one. */
  annotate(namespace: string, name: string, annotations: Readonly<Record<string, string | null>>) {
    return this.send("PATCH", `/api/v1/namespaces/${namespace}/pods/${name}`, { metadata: { annotations } });
  }

  private send(method: "POST" | "PATCH", path: string, body: object): Promise<Created> {
    const { host, port, ca = "", token } = this.cluster.api.admin;
    const type = method === "POST" ? "application/json" : "application/merge-patch+json";
    const headers = { "content-type": type, authorization: `Bearer ${token}` };
    return new Promise((resolve, reject) => {
      const outgoing = request({ host, port, ca, method, path, headers }, (response) => {
        let text = "";
        response.on("data", (chunk: Buffer) => {
          text += chunk;
        });
        response.on("end", () => {
          const { metadata = {} } = JSON.parse(text) as { metadata?: { name?: string; annotations?: Annotations } };
          const warnings = response.headers["warning"] ?? "";
          resolve({
            ...{ status: response.statusCode ?? 0, text, name: metadata.name ?? "" },
            annotations: metadata.annotations ?? {},
            warnings: typeof warnings === "string" && warnings !== "" ? [warnings] : [],
          });
        });
      });
      outgoing.on("error", reject);
      outgoing.end(JSON.stringify(body));
    });
  }

  async close(): Promise<void> {
    await this.cluster.close();
    this.service.close();
  }
}
