/** The Multus operator within a test, against a real API server and with the rights that its chart gives. */
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { App, Chart } from "cdk8s";
import { LinkerdMultus } from "../../constructs/multus/linkerd-multus";
import type { ApiServer } from "../../kubernetes/api-server";
import { get } from "./http";
import { metricIn } from "./metrics";
import { freePort } from "./ports";
import { type ProgramOptions, startProgram } from "./program";
import { type ApiObject, RealApi } from "./real-api";
import { until } from "./until";

export const CNI_NAMESPACE = "linkerd-cni";
export const OPERATOR_NAMESPACE = "linkerd-multus";

/** Objects of the chart that the operator uses, besides its webhook. */
const KINDS = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Secret"];

/** The kind as Multus brings it. */
export const CRD = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "network-attachment-definitions.k8s.cni.cncf.io" },
  spec: {
    group: "k8s.cni.cncf.io",
    scope: "Namespaced",
    names: {
      plural: "network-attachment-definitions",
      singular: "network-attachment-definition",
      kind: "NetworkAttachmentDefinition",
      shortNames: ["net-attach-def"],
    },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: { type: "object", properties: { config: { type: "string" } } },
            },
          },
        },
      },
    ],
  },
};

export interface Definition {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly managedFields: readonly { readonly manager: string; readonly operation: string }[];
  };
  readonly spec: { readonly config: string };
}

interface Event {
  readonly reason: string;
  readonly note: string;
  readonly reportingController: string;
  readonly regarding: { readonly kind: string; readonly name: string; readonly uid?: string };
}

/** The part of a cluster's API that the operator uses. */
export class MultusApi {
  private constructor(readonly api: RealApi) {}

  /** With the chart's roles and the namespaces that it needs, but without the kind that Multus brings. */
  static async start(flags: readonly string[] = []): Promise<MultusApi> {
    const api = await RealApi.start(`system:serviceaccount:${OPERATOR_NAMESPACE}:linkerd-multus`, flags);
    const made = new MultusApi(api);
    await made.prepare().catch(async (error: unknown) => {
      await api.close();
      throw error;
    });
    return made;
  }

  private async prepare(): Promise<void> {
    for (const name of [CNI_NAMESPACE, OPERATOR_NAMESPACE]) await this.namespace(name);
    const chart = new Chart(new App(), "chart");
    new LinkerdMultus(chart, "multus", { namespace: OPERATOR_NAMESPACE });
    const objects = chart.toJson() as ApiObject[];
    await this.api.create(...objects.filter(({ kind }) => KINDS.includes(kind)));
  }

  /** What Multus brings. */
  installMultus(): Promise<void> {
    return this.api.define(CRD);
  }

  async namespace(name: string, multus?: string): Promise<void> {
    const annotations = multus === undefined ? {} : { "linkerd.io/multus": multus };
    await this.api.json({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name, annotations } } });
  }

  /** Sets the annotation of a namespace; null removes it. */
  async annotate(name: string, multus: string | null): Promise<void> {
    const body = { metadata: { annotations: { "linkerd.io/multus": multus } } };
    await this.merge(`/api/v1/namespaces/${name}`, body);
  }

  async merge(path: string, body: object): Promise<void> {
    await this.api.json({ method: "PATCH", path, body, contentType: "application/merge-patch+json" });
  }

  /** Creates or changes the ConfigMap with the plugin's configuration. */
  async configure(stanza: object | string): Promise<void> {
    const text = typeof stanza === "string" ? stanza : JSON.stringify(stanza);
    const path = `/api/v1/namespaces/${CNI_NAMESPACE}/configmaps`;
    const body = { metadata: { name: "linkerd-cni-config" }, data: { cni_network_config: text } };
    const { status } = await this.api.request({ method: "POST", path, body });
    if (status === 409) await this.merge(`${path}/linkerd-cni-config`, body);
  }

  definitionsPath(namespace?: string): string {
    const place = namespace === undefined ? "" : `namespaces/${namespace}/`;
    return `/apis/k8s.cni.cncf.io/v1/${place}network-attachment-definitions`;
  }

  definitionPath(namespace: string): string {
    return `${this.definitionsPath(namespace)}/linkerd-cni`;
  }

  async definition(namespace: string): Promise<Definition | undefined> {
    const { status, body } = await this.api.request({ path: this.definitionPath(namespace) });
    return status === 200 ? (JSON.parse(body) as Definition) : undefined;
  }

  /** Parsed `spec.config` of a namespace's definition; undefined if there is none. */
  async config(namespace: string): Promise<Record<string, unknown> | undefined> {
    const found = await this.definition(namespace);
    return found === undefined ? undefined : JSON.parse(found.spec.config);
  }

  async events(namespace: string): Promise<readonly Event[]> {
    const path = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
    return (await this.api.json<{ items: readonly Event[] }>({ path })).items;
  }

  close(): Promise<void> {
    return this.api.close();
  }
}

/** What the operator's container is given for an API server; the directory is a service account's. */
function environmentOf(server: ApiServer, directory: string, podName: string): Record<string, string> {
  writeFileSync(join(directory, "token"), `${server.token}\n`);
  writeFileSync(join(directory, "ca.crt"), server.ca ?? "");
  return {
    KUBERNETES_SERVICE_HOST: server.host,
    KUBERNETES_SERVICE_PORT: String(server.port),
    SERVICE_ACCOUNT_DIR: directory,
    POD_NAMESPACE: OPERATOR_NAMESPACE,
    POD_NAME: podName,
  };
}

/** A process of the operator, as the image runs it. */
export class OperatorProcess {
  /** Its lines. */
  readonly log: string[] = [];
  private readonly ended: Promise<number | null>;

  private constructor(
    readonly name: string,
    readonly child: ChildProcess,
    private readonly ports: { readonly health: number; readonly metrics: number },
    private readonly directory: string,
  ) {
    this.ended = new Promise((resolve) => child.once("close", resolve));
    let rest = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      this.log.push(...lines);
    });
  }

  /** @param how it is run, if it is not the built executable itself */
  static async start(
    api: MultusApi,
    name: string,
    args: readonly string[] = [],
    how: Pick<ProgramOptions, "runner" | "executable"> = {},
  ) {
    const directory = mkdtempSync(join(tmpdir(), "multus-"));
    const ports = { health: await freePort(), metrics: await freePort() };
    const flags = [
      `-health-probe-bind-address=127.0.0.1:${ports.health}`,
      `-metrics-bind-address=127.0.0.1:${ports.metrics}`,
      `-webhook-port=${await freePort()}`,
    ];
    const env = environmentOf(api.api.server, directory, name);
    const child = startProgram("multus", { ...how, args: [...flags, ...args], env });
    child.stderr?.pipe(process.stderr);
    return new OperatorProcess(name, child, ports, directory);
  }

  /** Whether a line of its log holds the text. */
  said(text: string): boolean {
    return this.log.some((line) => line.includes(text));
  }

  ask(path: "/healthz" | "/readyz" | "/metrics"): ReturnType<typeof get> {
    return get(path === "/metrics" ? this.ports.metrics : this.ports.health, path);
  }

  /** A metric's value; `name` with labels if it has any. */
  async metric(name: string): Promise<number> {
    return metricIn((await this.ask("/metrics")).text, `linkerd_multus_${name}`);
  }

  /** Ends it once it has released the lease, without waiting for its webhook to drain. */
  async retire(): Promise<void> {
    this.child.kill("SIGTERM");
    await until("the lease to be released", () => this.said("released the lease"));
    await this.end("SIGKILL");
  }

  /** Sends a signal, and waits for the end if the signal ends the process. @returns the exit code */
  async end(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
    const code = await this.ended;
    rmSync(this.directory, { recursive: true, force: true });
    return code;
  }
}
