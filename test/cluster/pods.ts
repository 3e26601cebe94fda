import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { PROGRAMS_IMAGE } from "./images";
import type { Machine } from "./machine";
import { paths } from "./paths";

/** The parts of a pod that matter to the redirect. */
export interface PodOptions {
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** `sidecar` is a container beside the application, `native` an init container that stays. */
  readonly proxy?: "sidecar" | "native";
  /** Init containers by name: each dials an address as a user. */
  readonly dialers?: Readonly<Record<string, { readonly uid: number; readonly address: string }>>;
  /** With an init container that fails, as linkerd's does, if connections are not redirected. */
  readonly validator?: boolean;
  readonly hostNetwork?: boolean;
  /** Command of the application's container. @default serves on port 8080 */
  readonly args?: readonly string[];
}

export interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
  };
  readonly status: {
    readonly podIP?: string;
    readonly phase: string;
    readonly initContainerStatuses?: readonly { readonly restartCount: number; readonly lastState?: object }[];
  };
}

const container = (name: string, args: readonly string[], uid?: number) => ({
  name,
  image: PROGRAMS_IMAGE,
  args,
  ...(uid === undefined ? {} : { securityContext: { runAsUser: uid } }),
});
/** Listens on the ports of linkerd's proxy, runs as its user, and tells clients the address they connected to. */
export const PROXY = container("linkerd-proxy", ["proxy"], 2102);

/** An address that no host has. */
export const VALIDATOR = container("linkerd-network-validator", ["validate", "192.0.2.1:20001"], 65534);

/** linkerd's injector also writes this: it marks a pod as injected, without a look at its containers. */
export const INJECTED = { "linkerd.io/created-by": "linkerd/proxy-injector edge-26.5.1" };

/** The specification of a pod, also for controllers. */
export function podSpec(options: PodOptions) {
  const dialers = Object.entries(options.dialers ?? {}).map(([name, { uid, address }]) =>
    container(name, ["dial", address], uid),
  );
  return {
    terminationGracePeriodSeconds: 1,
    hostNetwork: options.hostNetwork === true,
    initContainers: [
      ...(options.validator === true ? [VALIDATOR] : []),
      ...(options.proxy === "native" ? [{ ...PROXY, restartPolicy: "Always" }] : []),
      ...dialers,
    ],
    containers: [container("app", options.args ?? ["serve", "8080"]), ...(options.proxy === "sidecar" ? [PROXY] : [])],
  };
}

/** Annotations that every injector writes on the pods that it meshes. */
export const podAnnotations = ({ proxy, annotations = {} }: PodOptions) => ({
  ...(proxy === undefined ? {} : { "linkerd.io/proxy-version": "edge-26.5.1" }),
  ...annotations,
});

export const pod = (name: string, options: PodOptions = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name,
    namespace: options.namespace ?? "default",
    labels: options.labels ?? {},
    annotations: podAnnotations(options),
  },
  spec: podSpec(options),
});

export const namespace = (name: string, annotations: Readonly<Record<string, string>> = {}) => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, annotations },
});

/** Characters of the kubelet's log that are shown for a pod that does not start. */
const KUBELET_LOG = 4_000;

/** The cluster as its user sees it, by kubectl. */
export class Kubectl {
  constructor(private readonly machine: Machine) {}

  run(...args: string[]): Promise<string> {
    return this.machine.run(["kubectl", ...args]);
  }

  async json<T>(...args: string[]): Promise<T> {
    return JSON.parse(await this.run(...args, "--output=json")) as T;
  }

  /** Creates objects, in order, without a copy of each in its annotations. */
  async create(...items: readonly object[]): Promise<void> {
    const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
    await this.machine.run(["kubectl", "create", "-f", "-"], { input: list });
  }

  /** Creates or changes objects, in order. */
  async apply(...items: readonly object[]): Promise<void> {
    const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
    await this.machine.run(["kubectl", "apply", "-f", "-"], { input: list });
  }

  /** Creates an object by a dry run. @returns the API server's result */
  async dryRun<T>(object: object): Promise<T> {
    const command = ["kubectl", "create", "--dry-run=server", "--output=json", "-f", "-"];
    return JSON.parse(await this.machine.run(command, { input: JSON.stringify(object) })) as T;
  }

  /** Applies pods and waits until they are ready. @returns their addresses, in order */
  async start(...pods: readonly ReturnType<typeof pod>[]): Promise<string[]> {
    await this.apply(...pods);
    return Promise.all(pods.map(({ metadata }) => this.ready(metadata.name, metadata.namespace)));
  }

  /** Waits until a pod is ready. @returns its address */
  async ready(name: string, namespace = "default"): Promise<string> {
    const where = `--namespace=${namespace}`;
    try {
      await this.run("wait", where, `pod/${name}`, "--for=condition=Ready", "--timeout=180s");
    } catch (error) {
      // Without an event only its node and its conditions say how far it has come.
      const description = await this.run("describe", where, `pod/${name}`);
      // A kubelet that does not run, or does not see the pod, says so in its log alone.
      const log = (await readFile(join(paths.logs, "kubelet"), "utf8").catch(String)).slice(-KUBELET_LOG);
      throw new Error(`${(error as Error).message}\n${description}\nThe kubelet: …${log}`, { cause: error });
    }
    const { status } = await this.json<Pod>("get", where, `pod/${name}`);
    return status.podIP ?? "";
  }

  /** Connects to an address from a container. @returns the answer of the application, or of the proxy */
  async dial(from: string, address: string, where: { namespace?: string; container?: string } = {}): Promise<object> {
    const [answer = {}] = await this.dialAll(from, [address], where);
    return answer;
  }

  /** Connects to each address from a container. @returns the answers, in order */
  async dialAll(
    from: string,
    addresses: readonly string[],
    { namespace = "default", container = "app" }: { namespace?: string; container?: string } = {},
  ): Promise<object[]> {
    const where = [`--namespace=${namespace}`, `--container=${container}`];
    const answers = await this.run("exec", from, ...where, "--", "/programs", "dial", ...addresses);
    return answers
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
  }

  /** Deletes pods and waits until they are gone. */
  async stop(...names: readonly string[]): Promise<void> {
    await this.run("delete", "pod", ...names, "--timeout=180s");
  }
}
