/** Flux's helm-controller and kustomize-controller, with a source controller of the test's own. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { parse } from "yaml";
import { until } from "../support/until";
import {
  type ChartTool,
  define,
  type Example,
  example,
  type GitOps,
  type GitRepository,
  type Installation,
  LINKERD_CNI,
  type Values,
} from "./gitops";
import { paths } from "./paths";
import type { TestCluster } from "./suite";

const execute = promisify(execFile);

const NAMESPACE = "flux-system";
/** Directory of the artifacts, and the address from which the controllers get them. */
const ARTIFACTS = { directory: join(paths.state, "artifacts"), port: 9790 } as const;
/** Directory of the released charts, as packages. */
export const RELEASED = join(paths.state, "released");
const REQUESTED = "reconcile.fluxcd.io/requestedAt";

interface FluxObject {
  readonly metadata: { readonly name: string; readonly generation: number };
  readonly spec: { readonly chart?: string; readonly url?: string; readonly ref?: { readonly tag: string } };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly lastHandledReconcileAt?: string;
    readonly lastAppliedRevision?: string;
    readonly artifact?: { readonly revision: string };
    readonly history?: readonly { readonly chartVersion: string }[];
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly message: string;
      readonly observedGeneration?: number;
    }[];
  };
}

/** Stands in for the source controller: serves the newest commit's files, and each chart that is asked for. */
class Sources {
  constructor(
    private readonly cluster: TestCluster,
    private readonly git: GitRepository,
  ) {}

  async start(): Promise<void> {
    await mkdir(ARTIFACTS.directory);
    const address = `127.0.0.1:${ARTIFACTS.port}`;
    await this.cluster.machine.daemon("artifacts", [
      "busybox",
      "httpd",
      "-f",
      "-p",
      address,
      "-h",
      ARTIFACTS.directory,
    ]);
  }

  async stop(): Promise<void> {
    await this.cluster.machine.endDaemon("artifacts");
    await rm(ARTIFACTS.directory, { recursive: true });
  }

  /** Says of each source what the newest commit makes of it. @returns the newest commit's revision */
  async publish(): Promise<string> {
    const head = await this.git.head();
    const revision = `main@sha1:${head}`;
    for (const source of await this.objects("gitrepository")) {
      if (isPublished(source, revision)) continue;
      const file = `${head}.tar.gz`;
      await this.git.git("archive", "--format=tar.gz", `--output=${join(ARTIFACTS.directory, file)}`, head);
      await this.tell("gitrepository", source, file, revision);
    }
    for (const chart of await this.objects("helmchart")) await this.publishChart(chart);
    for (const source of await this.objects("ocirepository")) await this.publishPackage(source);
    return revision;
  }

  /** The package of a chart that `helm package` has put into the directory of released charts. */
  private async publishPackage(source: FluxObject): Promise<void> {
    const { url = "", ref } = source.spec;
    const file = `${basename(url)}-${ref?.tag}.tgz`;
    const content = await readFile(join(RELEASED, file));
    const revision = `${ref?.tag}@sha256:${createHash("sha256").update(content).digest("hex")}`;
    if (isPublished(source, revision)) return;
    await writeFile(join(ARTIFACTS.directory, file), content);
    await this.tell("ocirepository", source, file, revision);
  }

  private async publishChart(chart: FluxObject): Promise<void> {
    const directory = join(this.git.path, chart.spec.chart ?? "");
    const { version } = parse(await readFile(join(directory, "Chart.yaml"), "utf8")) as { version: string };
    // As the default reconcileStrategy has it: another version is another chart.
    if (isPublished(chart, version)) return;
    const into = join(ARTIFACTS.directory, chart.metadata.name);
    await rm(into, { recursive: true, force: true });
    await execute(paths.helm, ["package", directory, "--destination", into]);
    const [file = ""] = await readdir(into);
    await this.tell("helmchart", chart, join(chart.metadata.name, file), version);
  }

  private async tell(kind: string, { metadata }: FluxObject, file: string, revision: string): Promise<void> {
    const path = join(ARTIFACTS.directory, file);
    const digest = createHash("sha256").update(await readFile(path));
    const now = new Date().toISOString();
    const status = {
      observedGeneration: metadata.generation,
      artifact: {
        path: file,
        url: `http://127.0.0.1:${ARTIFACTS.port}/${file}`,
        revision,
        digest: `sha256:${digest.digest("hex")}`,
        size: (await stat(path)).size,
        lastUpdateTime: now,
      },
      conditions: [
        {
          type: "Ready",
          status: "True",
          reason: "Succeeded",
          message: `stored ${revision}`,
          observedGeneration: metadata.generation,
          lastTransitionTime: now,
        },
      ],
    };
    const patch = ["--subresource=status", "--type=merge", `--patch=${JSON.stringify({ status })}`];
    await this.cluster.kubectl.run("patch", kind, metadata.name, `--namespace=${NAMESPACE}`, ...patch);
  }

  private async objects(kind: string): Promise<readonly FluxObject[]> {
    const { items } = await this.cluster.kubectl.json<{ items: FluxObject[] }>("get", kind, `--namespace=${NAMESPACE}`);
    return items;
  }
}

const isPublished = ({ metadata, status }: FluxObject, revision: string) =>
  status?.observedGeneration === metadata.generation && status.artifact?.revision === revision;

/** Common part of Flux's HelmRelease and Kustomization. */
abstract class Flux implements GitOps {
  private requests = 0;
  protected readonly sources: Sources;

  /** @param programs directory with the controllers and the definitions of Flux's kinds */
  constructor(
    protected readonly cluster: TestCluster,
    protected readonly git: GitRepository,
    private readonly programs: string,
  ) {
    this.sources = new Sources(cluster, git);
  }

  protected abstract readonly controller: string;
  protected abstract readonly kind: string;
  /** What Events about what was changed back are told by. */
  protected abstract readonly correction: RegExp;

  async start(): Promise<void> {
    const { kubectl, machine } = this.cluster;
    const definitions = (await readdir(this.programs)).filter((name) => name.includes("toolkit.fluxcd.io_"));
    await define(
      kubectl,
      definitions.map((name) => join(this.programs, name)),
    );
    await kubectl.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
    await this.sources.start();
    const flags = ["--metrics-addr=127.0.0.1:9791", "--health-addr=127.0.0.1:9792", "--enable-leader-election=false"];
    const program = join(this.programs, this.controller);
    await machine.daemon(this.controller, ["env", `RUNTIME_NAMESPACE=${NAMESPACE}`, program, ...flags]);
  }

  async stop(): Promise<void> {
    await this.cluster.machine.endDaemon(this.controller);
    await this.cluster.kubectl.run("delete", "gitrepositories,ocirepositories", "--all", `--namespace=${NAMESPACE}`);
    await this.sources.stop();
  }

  abstract install(what: Installation): Promise<void>;

  async settled(what: Installation): Promise<void> {
    await this.waitFor(what, `the newest commit in ${what.name}`, async (object) => {
      const revision = await this.sources.publish();
      return isReady(object) && (await this.isInstalled(object, revision, what));
    });
  }

  protected abstract isInstalled(object: FluxObject, revision: string, what: Installation): Promise<boolean>;

  async reconcile(what: Installation): Promise<void> {
    const token = `request-${++this.requests}-${Date.now()}`;
    await this.cluster.kubectl.run("annotate", "--overwrite", ...this.at(what), `${REQUESTED}=${token}`);
    await this.waitFor(
      what,
      `a reconciliation of ${what.name}`,
      async (object) => object.status?.lastHandledReconcileAt === token && isReady(object),
    );
  }

  async corrections({ name }: Installation): Promise<readonly string[]> {
    type Events = { items: { reason: string; message: string; count?: number }[] };
    const fields = `--field-selector=involvedObject.kind=${this.kind},involvedObject.name=${name}`;
    const { items } = await this.cluster.kubectl.json<Events>("get", "events", `--namespace=${NAMESPACE}`, fields);
    return items
      .map(({ reason, message, count = 1 }) => `${count} times ${reason}: ${message}`)
      .filter((text) => this.correction.test(text));
  }

  async uninstall(what: Installation): Promise<void> {
    await this.cluster.kubectl.run("delete", ...this.at(what), "--timeout=180s");
  }

  protected at({ name }: Installation): string[] {
    return [this.kind.toLowerCase(), name, `--namespace=${NAMESPACE}`];
  }

  /** The example's Git repository and namespace, as an installation has them. The sources look at no URL. */
  protected async prerequisites({ name, namespace }: Installation): Promise<Example[]> {
    const objects = await example("flux-helmrelease.yaml");
    for (const { kind, metadata, spec } of objects) {
      metadata.name = kind === "Namespace" ? namespace : name;
      if (kind === "GitRepository") spec.ref = { branch: "main" };
    }
    return objects;
  }

  private async waitFor(what: Installation, goal: string, is: (object: FluxObject) => Promise<boolean>): Promise<void> {
    let last: FluxObject | undefined;
    const met = async () => {
      last = await this.cluster.kubectl.json<FluxObject>("get", ...this.at(what));
      return is(last);
    };
    await until(goal, met, 150).catch((error) => {
      throw new Error(`${error.message}: ${JSON.stringify(last?.status)}`, { cause: error });
    });
  }
}

const isReady = ({ metadata: { generation }, status }: FluxObject) =>
  status?.observedGeneration === generation &&
  (status.conditions ?? []).some(
    ({ type, status, observedGeneration }) =>
      type === "Ready" && status === "True" && observedGeneration === generation,
  );

/** A HelmRelease of the chart, as examples/flux-helmrelease.yaml has it. */
export class FluxHelm extends Flux implements ChartTool {
  protected readonly controller = "helm-controller";
  protected readonly kind = "HelmRelease";
  protected readonly correction = /Drift/;

  async install(what: Installation): Promise<void> {
    const objects = await this.prerequisites(what);
    const release = objects.find(({ kind }) => kind === "HelmRelease")?.spec;
    Object.assign(release, { releaseName: what.name, targetNamespace: what.namespace });
    // The values are those of one chart.
    if (what !== LINKERD_CNI) release.values = {};
    Object.assign(release.chart.spec, { chart: what.path, sourceRef: { kind: "GitRepository", name: what.name } });
    await this.cluster.kubectl.apply(...objects);
  }

  async setValues(what: Installation, values: Values): Promise<void> {
    await this.patch(what, { values });
  }

  private async patch(what: Installation, spec: object): Promise<void> {
    await this.cluster.kubectl.run("patch", ...this.at(what), "--type=merge", `--patch=${JSON.stringify({ spec })}`);
  }

  protected async isInstalled({ status }: FluxObject, _: string, { name }: Installation): Promise<boolean> {
    const { kubectl } = this.cluster;
    // The controller has made it of the release's own words.
    const chart = ["helmchart", `${NAMESPACE}-${name}`, `--namespace=${NAMESPACE}`];
    const { status: source } = await kubectl.json<FluxObject>("get", ...chart);
    return source?.artifact?.revision === status?.history?.[0]?.chartVersion;
  }
}

/** A HelmRelease of the released chart, as examples/flux-ocirepository.yaml has it. */
export class FluxOci extends FluxHelm {
  override async install(): Promise<void> {
    const objects = await example("flux-ocirepository.yaml");
    await this.cluster.kubectl.apply(...objects);
  }

  /** Takes another release. */
  async release({ name }: Installation, tag: string): Promise<void> {
    const patch = JSON.stringify({ spec: { ref: { tag } } });
    const at = ["ocirepository", name, `--namespace=${NAMESPACE}`];
    await this.cluster.kubectl.run("patch", ...at, "--type=merge", `--patch=${patch}`);
  }

  /** The controller adds the package's digest to the chart's version. */
  protected override async isInstalled({ status }: FluxObject, _: string, { name }: Installation): Promise<boolean> {
    const source = ["ocirepository", name, `--namespace=${NAMESPACE}`];
    const { spec } = await this.cluster.kubectl.json<FluxObject>("get", ...source);
    return status?.history?.[0]?.chartVersion.split("+")[0] === spec.ref?.tag;
  }
}

/** A Kustomization of dist/manifests. */
export class FluxKustomize extends Flux {
  protected readonly controller = "kustomize-controller";
  protected readonly kind = "Kustomization";
  protected readonly correction = /configured/;

  async install(what: Installation): Promise<void> {
    const objects = (await this.prerequisites(what)).filter(({ kind }) => kind !== "HelmRelease");
    const [kustomization] = await example("flux-kustomization.yaml");
    if (kustomization === undefined) throw new Error("the example is empty");
    await this.cluster.kubectl.apply(...objects, kustomization);
  }

  /** The manifests hold the namespace, too. */
  override async uninstall(what: Installation): Promise<void> {
    await super.uninstall(what);
    await this.cluster.kubectl.run("wait", "--for=delete", `namespace/${what.namespace}`, "--timeout=180s");
  }

  protected async isInstalled({ status }: FluxObject, revision: string): Promise<boolean> {
    return status?.lastAppliedRevision === revision;
  }
}
