import { reasonOf } from "../../cni/errors";
import { KubernetesClient } from "../../kubernetes/client";
import { resources } from "../../kubernetes/resources";
import type { Transport } from "../../kubernetes/transport";
import type { Log } from "../../process/log";

interface OwnDaemonSetDeps {
  readonly namespace: string;
  /** This pod. */
  readonly pod: string;
  readonly connect: () => Transport;
  readonly log: Log;
}

const DEADLINE_MS = 3_000;

/** Kubernetes appends a hyphen and five characters to a DaemonSet's name, and cuts the name if the whole is longer. */
const GENERATED = /^(.+)-[bcdfghjklmnpqrstvwxz2456789]{5}$/;
const LONGEST_NAME = 63;

/** The DaemonSet's name derived from its pod's; undefined if that is not possible. */
export function guessDaemonSet(pod: string): string | undefined {
  return pod.length < LONGEST_NAME ? GENERATED.exec(pod)?.[1] : undefined;
}

/**
 * The DaemonSet of this pod. Its name is not constant: kustomize's namePrefix and nameSuffix change it. The pod's owner
 * reference names it; until the API server allows reading that, it is the prefix of the pod's name.
 */
export class OwnDaemonSet {
  private owner: string | undefined;
  private isKnown = false;

  constructor(private readonly deps: OwnDaemonSetDeps) {}

  /** Undefined if unknown, or if the pod does not belong to a DaemonSet. */
  get name(): string | undefined {
    return this.isKnown ? this.owner : guessDaemonSet(this.deps.pod);
  }

  /** Whether an installer is one of its pods, by its identity; undefined if unknown. */
  has(identity: string): boolean | undefined {
    const [, namespace, pod = ""] = /^([^/]+)\/(\S+) \(UID /.exec(identity) ?? [];
    const of = guessDaemonSet(pod);
    if (of === undefined || this.name === undefined) return undefined;
    return namespace === this.deps.namespace && of === this.name;
  }

  /** Asks the API server if it is not known yet. Never rejects. Returns whether the name changed. */
  async learn(): Promise<boolean> {
    if (this.isKnown) return false;
    const before = this.name;
    try {
      await this.read(this.deps.connect());
    } catch (error) {
      this.deps.log.debug(`our DaemonSet: ${reasonOf(error)}`);
    }
    return this.name !== before;
  }

  private async read(send: Transport): Promise<void> {
    const { namespace, pod: name, log } = this.deps;
    const client = new KubernetesClient(send, { deadlineMs: DEADLINE_MS });
    const pod = await client.get(resources.pods, { namespace, name });
    if (pod.metadata?.name !== name) return log.debug(`the answer for ${namespace}/${name} is not this Pod`);
    this.owner = pod.metadata.ownerReferences?.find((each) => each.kind === "DaemonSet")?.name;
    this.isKnown = true;
    log.debug(`our DaemonSet is ${namespace}/${this.owner ?? "none"}`);
  }
}
