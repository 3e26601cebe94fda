import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { PLUGIN_TYPE, POD_ANNOTATIONS } from "../cni/stanza";
import { pathOf, resources } from "../kubernetes/resources";
import type { ApiStub } from "../test/support/api-server";
import type { Attachment, CniRunner } from "../test/support/cni-runner";
import type { AddResult, ProbeResult } from "./report";
import type { Addresses, Sandbox } from "./sandbox";
import * as scene from "./scene";

const run = promisify(execFile);

function attachmentOf(pod: scene.DemoPod, netns: string): Attachment {
  return {
    containerId: pod.containerId,
    netns,
    ifname: "eth0",
    args: { K8S_POD_NAMESPACE: scene.NAMESPACE, K8S_POD_NAME: pod.name, K8S_POD_INFRA_CONTAINER_ID: pod.containerId },
    capabilities: { [POD_ANNOTATIONS]: pod.annotations },
  };
}

/** The addresses in a CNI result. */
function addressesOf(result: string): Addresses {
  const { ips } = JSON.parse(result) as { readonly ips: readonly { readonly address: string }[] };
  const found = ips.map(({ address }) => address.replace(/\/.*/, ""));
  return Object.fromEntries(found.map((address) => [address.includes(":") ? 6 : 4, address]));
}

/** Whether the plugin requested it: the installer also sends requests, but not for the pods' namespace. */
function isAboutPods(path: string): boolean {
  const namespace = pathOf(resources.namespaces, { name: scene.NAMESPACE });
  return path === namespace || path.startsWith(`${namespace}/`);
}

/** Starts pods through the node's chain, sends traffic, and stops them. */
export class Demonstration {
  readonly adds: AddResult[] = [];
  private readonly started: { readonly attachment: Attachment; readonly result: unknown }[] = [];

  constructor(
    private readonly runner: CniRunner,
    private readonly sandbox: Sandbox,
    private readonly api: ApiStub,
  ) {}

  async startPod(pod: scene.DemoPod): Promise<void> {
    const earlier = this.api.requests.length;
    const attachment = attachmentOf(pod, await this.sandbox.addNamespace(pod.name));
    const answers = await this.runner.add(attachment);
    const result = answers.at(-1)?.stdout ?? "";
    this.started.push({ attachment, result: JSON.parse(result) });
    this.sandbox.setAddresses(pod.name, addressesOf(result));
    this.adds.push({
      pod: pod.name,
      meshed: pod.containers.includes("linkerd-proxy"),
      milliseconds: answers.find(({ type }) => type === PLUGIN_TYPE)?.milliseconds ?? Number.NaN,
      apiRequests: this.api.requests.slice(earlier).filter(isAboutPods).length,
    });
    await this.sandbox.listen(pod.name, scene.podListeners);
  }

  async probe(proxyUid: number | undefined): Promise<ProbeResult[]> {
    const results: ProbeResult[] = [];
    for (const probe of scene.probes(this.sandbox.families, proxyUid)) {
      const reached = await this.sandbox.ask(probe);
      results.push({ ...probe, reached, passed: reached === probe.expect });
    }
    return results;
  }

  /** Runs CHECK for every plugin of the chain. */
  async check(): Promise<void> {
    for (const { attachment, result } of this.started) await this.runner.check(attachment, result);
  }

  /** A pod's rules as nft lists them; undefined if nft is not installed. */
  async rules(pod: string): Promise<string | undefined> {
    try {
      const { stdout } = await run("nsenter", [`--net=/run/netns/${pod}`, "nft", "list", "ruleset"]);
      return stdout.trim();
    } catch {
      return undefined;
    }
  }

  async stopPods(): Promise<void> {
    for (const { attachment, result } of this.started.reverse()) await this.runner.del(attachment, result);
  }
}
