/** The built l5d-cni, with kubectl and a real API server. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { buildCli } from "../../build/cli";
import type { ApiServer } from "../../kubernetes/api-server";
import { paths } from "../cluster/paths";
import { kubeconfig } from "./kubeconfig";
import { type ApiObject, RealApi, realApiMissing } from "./real-api";
import { which } from "./requirements";

/** What is missing here for one, in words. kubectl is the cluster's, or the machine's own. */
export function cliMissing(): string | undefined {
  const kubectl = existsSync(join(paths.binaries, "kubectl")) || which("kubectl") !== undefined;
  return realApiMissing() ?? (kubectl ? undefined : "kubectl");
}

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

interface Surroundings {
  readonly kubeconfig?: string;
  readonly path?: string;
  readonly input?: string;
}

export interface Check {
  readonly description: string;
  readonly result: string;
  readonly error?: string;
}

const PATH = [paths.binaries, process.env["PATH"]].join(delimiter);
const IMAGE = "registry.invalid/image";

/** A pod of a namespace `shop`. */
export const shopPod = (name: string, metadata: object, containers: readonly string[]) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "shop", ...metadata },
  spec: { containers: containers.map((each) => ({ name: each, image: IMAGE })) },
});

/** Annotations that change the redirect, without their prefix. */
export const settings = (given: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(given).map(([name, value]) => [`config.linkerd.io/${name}`, value]));

export class CliCluster {
  /** Holds nothing but the command itself, also under its names for kubectl and linkerd, and the kubeconfigs. */
  readonly folder = mkdtempSync(join(tmpdir(), "cli-"));
  private readonly cli = join(this.folder, "l5d-cni");
  readonly admin = join(this.folder, "admin.kubeconfig");
  /** Kubeconfig of a user `reader` without rights. */
  readonly reader = join(this.folder, "reader.kubeconfig");

  private constructor(readonly api: RealApi) {
    const write = (path: string, { token = "", ca = "", ...server }: ApiServer) =>
      writeFileSync(path, kubeconfig({ ...server, token, ca }));
    write(this.admin, api.admin);
    write(this.reader, api.server);
  }

  static async start(): Promise<CliCluster> {
    const made = new CliCluster(await RealApi.start("reader"));
    await buildCli(made.cli);
    const names = ["kubectl-l5d_cni", "linkerd-cni"];
    for (const name of names) symlinkSync(made.cli, join(made.folder, name));
    return made;
  }

  async close(): Promise<void> {
    await this.api.close();
    rmSync(this.folder, { recursive: true });
  }

  /** Runs the command. */
  run(args: readonly string[], around: Surroundings = {}): Promise<Ended> {
    return this.start(process.execPath, [this.cli, ...args], around);
  }

  /** Runs kubectl as the administrator. */
  async kubectl(...args: readonly string[]): Promise<string> {
    return (await this.start("kubectl", args, {})).out;
  }

  /** Runs the command, and passes its output to kubectl. */
  async piped(args: readonly string[], ...kubectl: readonly string[]): Promise<Ended> {
    const { out } = await this.run(args);
    return this.start("kubectl", kubectl, { input: out });
  }

  /** Runs a line of a shell, in which the command is on the path. @param tools a directory of other programs */
  shell(line: string, directory: string, tools: string): Promise<Ended> {
    const path = [this.folder, tools, PATH].join(delimiter);
    return this.start("bash", ["-c", `set -o pipefail; cd "${directory}"; ${line}`], { path });
  }

  /** Runs `l5d-cni check`. */
  async check(
    ...args: readonly string[]
  ): Promise<{ readonly code: number | null; readonly checks: readonly Check[] }> {
    const { code, out, err } = await this.run(["check", "--output", "json", ...args]);
    if (out === "") throw new Error(`l5d-cni check printed nothing, and ended with status ${code}: ${err}`);
    const { categories } = JSON.parse(out) as { categories: { checks: Check[] }[] };
    return { code, checks: categories.flatMap(({ checks }) => checks) };
  }

  patch(path: string, body: object, kind: "merge" | "strategic-merge" = "strategic-merge"): Promise<object> {
    return this.api.json({ method: "PATCH", path, body, contentType: `application/${kind}-patch+json` });
  }

  /** A node with the DaemonSet's pod, as the controller manager and the kubelet would make it. */
  async node(name: string, namespace: string, ready: boolean): Promise<void> {
    const path = `/apis/apps/v1/namespaces/${namespace}/daemonsets/linkerd-cni`;
    const { uid } = (await this.api.json<{ metadata: { uid: string } }>({ path })).metadata;
    const owner = { apiVersion: "apps/v1", kind: "DaemonSet", name: "linkerd-cni", uid, controller: true };
    const pod = {
      ...shopPod("", {}, []),
      metadata: {
        name: `linkerd-cni-${name}`,
        namespace,
        labels: { "k8s-app": "linkerd-cni" },
        ownerReferences: [owner],
      },
      spec: { nodeName: name, containers: [{ name: "install-cni", image: IMAGE }] },
    };
    const labels = { "kubernetes.io/os": "linux" };
    await this.api.create({ apiVersion: "v1", kind: "Node", metadata: { name, labels } } as ApiObject, pod);
    const waiting = { reason: "ImagePullBackOff", message: "no such image" };
    const state = ready ? { running: {} } : { waiting };
    await this.patch(`/api/v1/namespaces/${namespace}/pods/linkerd-cni-${name}/status`, {
      status: {
        conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
        containerStatuses: [{ name: "install-cni", image: IMAGE, imageID: "", ready, restartCount: 0, state }],
      },
    });
  }

  private start(program: string, args: readonly string[], around: Surroundings): Promise<Ended> {
    const env = {
      PATH: around.path ?? [this.folder, PATH].join(delimiter),
      HOME: this.folder,
      KUBECONFIG: around.kubeconfig ?? this.admin,
    };
    return new Promise((resolve, reject) => {
      const child = spawn(program, args, { env, stdio: "pipe" });
      const said = { out: "", err: "" };
      child.stdout.on("data", (part: Buffer) => {
        said.out += part;
      });
      child.stderr.on("data", (part: Buffer) => {
        said.err += part;
      });
      child.once("error", reject).once("close", (code) => resolve({ code, ...said }));
      child.stdin.on("error", () => undefined).end(around.input ?? "");
    });
  }
}
