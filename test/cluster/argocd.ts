/** Argo CD's application controller and repository server, with Redis and a local Git repository. */
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../support/until";
import {
  type ChartTool,
  define,
  example,
  type GitRepository,
  type Installation,
  LINKERD_CNI,
  type Values,
} from "./gitops";
import { paths } from "./paths";
import type { TestCluster } from "./suite";

const NAMESPACE = "argocd";
const PORTS = { redis: 9793, repository: 9794, repositoryMetrics: 9795, controllerMetrics: 9796 } as const;
/** In the order in which they start. */
const DAEMONS = ["redis", "argocd-repo-server", "argocd-application-controller"] as const;
const REFRESH = "argocd.argoproj.io/refresh";
const PART = { "app.kubernetes.io/part-of": "argocd" };

interface Application {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: { readonly source: object };
  readonly status?: {
    readonly sync?: {
      readonly status: string;
      readonly revision?: string;
      readonly comparedTo: { readonly source: object };
    };
    readonly health?: { readonly status?: string };
    readonly operationState?: { readonly phase: string };
    readonly resources?: readonly { readonly kind: string; readonly name: string; readonly status?: string }[];
    readonly conditions?: readonly object[];
  };
}

/** An Application of the chart, as examples/argo-application.yaml has it. */
export class ArgoCd implements ChartTool {
  /**
   * @param programs directory with `argocd` and the definitions of its kinds
   * @param serverSide whether it applies server-side, as the example does
   */
  constructor(
    private readonly cluster: TestCluster,
    private readonly git: GitRepository,
    private readonly programs: string,
    private readonly serverSide: boolean,
    /** Additional variables of its programs. */
    private readonly environment: Readonly<Record<string, string>> = {},
  ) {}

  async start(): Promise<void> {
    const { kubectl } = this.cluster;
    await define(
      kubectl,
      ["application", "appproject"].map((name) => join(this.programs, `${name}-crd.yaml`)),
    );
    const metadata = (name: string) => ({ name, namespace: NAMESPACE, labels: PART });
    await kubectl.apply(
      { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } },
      { apiVersion: "v1", kind: "ConfigMap", metadata: metadata("argocd-cm") },
      {
        apiVersion: "v1",
        kind: "Secret",
        metadata: metadata("argocd-secret"),
        stringData: { "server.secretkey": "test" },
      },
      {
        apiVersion: "argoproj.io/v1alpha1",
        kind: "AppProject",
        metadata: metadata("default"),
        spec: {
          sourceRepos: ["*"],
          destinations: [{ namespace: "*", server: "*" }],
          clusterResourceWhitelist: [{ group: "*", kind: "*" }],
        },
      },
    );
    await this.startDaemons();
  }

  private async startDaemons(): Promise<void> {
    const state = join(paths.state, "argocd");
    await mkdir(state, { recursive: true });
    // kubectl contains kustomize.
    const kustomize = join(paths.programs, "kustomize");
    await writeFile(kustomize, '#!/bin/sh\n[ "$1" = build ] && shift && exec kubectl kustomize "$@"\necho v5.7.1\n');
    await chmod(kustomize, 0o755);
    const redis = `127.0.0.1:${PORTS.redis}`;
    const repository = `127.0.0.1:${PORTS.repository}`;
    const commands: Readonly<Record<(typeof DAEMONS)[number], readonly string[]>> = {
      redis: ["redis-server", "--bind", "127.0.0.1", "--port", `${PORTS.redis}`, "--save", "", "--dir", state],
      "argocd-repo-server": [
        join(this.programs, "argocd"),
        `--redis=${redis}`,
        "--address=127.0.0.1",
        `--port=${PORTS.repository}`,
        "--metrics-address=127.0.0.1",
        `--metrics-port=${PORTS.repositoryMetrics}`,
        "--disable-tls",
      ],
      "argocd-application-controller": [
        join(this.programs, "argocd"),
        `--redis=${redis}`,
        `--repo-server=${repository}`,
        "--repo-server-plaintext",
        `--namespace=${NAMESPACE}`,
        `--metrics-port=${PORTS.controllerMetrics}`,
      ],
    };
    for (const name of DAEMONS) {
      const settings = {
        // One executable, which is the program that it is called as.
        ARGOCD_BINARY_NAME: name,
        // It is to take its cluster from the kubeconfig, and has no directories of an image.
        ARGOCD_FAKE_IN_CLUSTER: "true",
        ARGOCD_GPG_ENABLED: "false",
        TMPDIR: state,
        ...this.environment,
      };
      const env = Object.entries(settings).map(([key, value]) => `${key}=${value}`);
      await this.cluster.machine.daemon(name, ["env", ...env, ...commands[name]]);
    }
  }

  async stop(): Promise<void> {
    for (const name of DAEMONS.toReversed()) await this.cluster.machine.endDaemon(name);
  }

  async install(what: Installation): Promise<void> {
    const [application] = await example("argo-application.yaml");
    if (application === undefined) throw new Error("the example is empty");
    const { metadata, spec } = application;
    metadata.name = what.name;
    spec.destination.namespace = what.namespace;
    Object.assign(spec.source, { repoURL: this.git.url, targetRevision: "main", path: what.path });
    spec.source.helm.releaseName = what.name;
    // The values are those of one chart.
    if (what !== LINKERD_CNI) spec.source.helm.valuesObject = {};
    if (!this.serverSide) spec.syncPolicy.syncOptions = ["CreateNamespace=true"];
    await this.cluster.kubectl.apply(application);
  }

  async settled(what: Installation): Promise<void> {
    await this.settledAt(what, await this.git.head());
  }

  /** Waits until a revision of the source is installed, and the Application is healthy. */
  async settledAt(what: Installation, revision: string): Promise<void> {
    await this.refresh(what);
    await this.waitFor(what, `${revision} in ${what.name}`, ({ spec, status }) => {
      const { sync, health, operationState } = status ?? {};
      return (
        sync?.status === "Synced" &&
        sync.revision === revision &&
        JSON.stringify(sync.comparedTo.source) === JSON.stringify(spec.source) &&
        health?.status === "Healthy" &&
        operationState?.phase === "Succeeded"
      );
    });
  }

  async reconcile(what: Installation): Promise<void> {
    await this.refresh(what);
    const isDone = ({ metadata }: Application) => metadata.annotations?.[REFRESH] === undefined;
    await this.waitFor(what, `a comparison of ${what.name}`, isDone);
  }

  private async refresh(what: Installation): Promise<void> {
    await this.cluster.kubectl.run("annotate", "--overwrite", ...this.at(what), `${REFRESH}=hard`);
  }

  async corrections({ name }: Installation): Promise<readonly string[]> {
    type Events = { items: { message: string; count?: number }[] };
    const fields = `--field-selector=involvedObject.kind=Application,involvedObject.name=${name}`;
    const { items } = await this.cluster.kubectl.json<Events>("get", "events", `--namespace=${NAMESPACE}`, fields);
    return items
      .map(({ message, count = 1 }) => `${count} times: ${message}`)
      .filter((text) => text.includes("-> OutOfSync"));
  }

  async setValues(what: Installation, valuesObject: Values): Promise<void> {
    await this.patch(what, { helm: { valuesObject } });
  }

  async patch(what: Installation, source: object): Promise<void> {
    const patch = JSON.stringify({ spec: { source } });
    await this.cluster.kubectl.run("patch", ...this.at(what), "--type=merge", `--patch=${patch}`);
  }

  async uninstall(what: Installation): Promise<void> {
    await this.cluster.kubectl.run("delete", ...this.at(what), "--timeout=180s");
  }

  private at({ name }: Installation): string[] {
    return ["application", name, `--namespace=${NAMESPACE}`];
  }

  private async waitFor(what: Installation, goal: string, is: (application: Application) => boolean): Promise<void> {
    let last: Application | undefined;
    const met = async () => {
      last = await this.cluster.kubectl.json<Application>("get", ...this.at(what));
      return is(last);
    };
    await until(goal, met, 150).catch((error) => {
      throw new Error(`${error.message}: ${JSON.stringify(last?.status)}`, { cause: error });
    });
  }
}
