import { podFromObject } from "../../cni/api-objects";
import { decide, type Namespace } from "../../cni/decide";
import { reasonOf } from "../../cni/errors";
import { isRedirected } from "../../cni/redirect/options";
import type { Stanza } from "../../cni/stanza";
import type { KubernetesClient } from "../../kubernetes/client";
import { resources } from "../../kubernetes/resources";
import type { Clock } from "../../process/clock";
import type { Log } from "../../process/log";
import { Loop } from "../../process/loop";
import type { AuditedPod } from "./audited-pod";
import { NRI_WAIT_MS, type PodStore, type Redirect, type TrackedPod } from "./pod-store";
import type { TcpAnswer } from "./probes";

/**
 * A test, without privileges, whether connections to a pod are redirected: an unused port accepts a connection only if
 * it is redirected to the proxy.
 */
interface AuditPlan {
  readonly host: string;
  /** A refusal is meaningful only if the proxy itself answers. */
  readonly proxyPort: number;
  readonly ports: readonly number[];
}

/** Far apart, and rarely used. */
const LIKELY_UNUSED = [64_321, 48_611, 31_997, 22_907];
const ENOUGH_PORTS = 3;

/** The ports to try; undefined if none is meaningful. @throws CniError for an invalid annotation */
function planAudit(
  name: string,
  { object, host, declared }: AuditedPod,
  namespace: Namespace,
  stanza: Stanza,
): AuditPlan | undefined {
  const known = podFromObject({ namespace: namespace.name, name }, object);
  const decision = decide(known, { namespace }, stanza);
  if (decision.kind === "skip" || host === "") return undefined;
  const { options } = decision;
  if (options.skipInboundSubnets.length > 0 || (host.includes(":") && !options.ipv6)) return undefined;
  const ports = [...LIKELY_UNUSED, ...options.portsToRedirect]
    .filter((port) => isRedirected(port, options) && !declared.includes(port))
    .slice(0, ENOUGH_PORTS);
  return ports.length === 0 ? undefined : { host, proxyPort: options.inboundPort, ports };
}

/** Interprets the answers. Connections are not redirected only if the proxy answers and every port refuses. */
function judgeAudit(proxy: TcpAnswer, ports: readonly TcpAnswer[]): Redirect {
  if (ports.includes("open")) return "present";
  return proxy === "open" && ports.every((each) => each === "refused") ? "absent" : "unknown";
}

interface AuditorDeps {
  readonly pods: PodStore;
  readonly client: KubernetesClient;
  readonly stanza: Stanza;
  readonly probe: (host: string, port: number) => Promise<TcpAnswer>;
  /** The NRI plugin may set a pod's redirect in place, so a finding is confirmed before it is reported. */
  readonly waitForNri: boolean;
  /** Connections to this pod are not redirected. Called once for each pod. */
  readonly found: (pod: TrackedPod) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const INTERVAL_MS = 10_000;
/** An inconclusive audit is repeated after this time. */
const REPEAT_MS = 5 * 60_000;

/** Tests whether connections to pods with a proxy and without a validator are redirected. */
export class Auditor {
  constructor(private readonly deps: AuditorDeps) {}

  /** Runs until the signal is given. */
  run(): Promise<void> {
    const { clock, pods, signal } = this.deps;
    const auditAll = async () => {
      for (const pod of [...pods.values()]) {
        // Another pod may have the address of a deleted one.
        const isDue = pods.get(pod.uid) === pod && pod.auditAt <= clock.now();
        if (isDue && pod.audited !== undefined && !signal.aborted) await this.audit(pod, pod.audited);
      }
      return INTERVAL_MS;
    };
    return new Loop(auditAll, { clock, signal }).run();
  }

  private async audit(pod: TrackedPod, audited: AuditedPod): Promise<void> {
    const { clock, found, log, pods, waitForNri } = this.deps;
    const redirect = await this.redirectOf(pod, audited);
    // A changed pod is audited again, a deleted one is not.
    if (pod.audited !== audited || pods.get(pod.uid) !== pod) return;
    const before = pod.redirect;
    if (redirect === "absent" && before === "unknown" && waitForNri) {
      pod.redirect = "suspected";
      pod.auditAt = clock.now() + NRI_WAIT_MS;
      return;
    }
    // A reported state stays until the next conclusive audit.
    pod.redirect = redirect === "unknown" && before === "absent" ? before : redirect;
    pod.auditAt = clock.now() + REPEAT_MS;
    if (redirect === "present") pod.audited = undefined;
    if (redirect !== "absent" || before === "absent") return;
    log.warn(`pod ${pod.namespace}/${pod.name}: connections to it are not redirected, and it has no validator`);
    await found(pod);
  }

  private async redirectOf({ namespace, name }: TrackedPod, audited: AuditedPod): Promise<Redirect> {
    const { client, log, probe, stanza } = this.deps;
    try {
      const { metadata } = await client.get(resources.namespaces, { name: namespace });
      const plan = planAudit(name, audited, { name: namespace, annotations: metadata?.annotations ?? {} }, stanza);
      if (plan === undefined) return "unknown";
      const ports = await Promise.all(plan.ports.map((port) => probe(plan.host, port)));
      return judgeAudit(await probe(plan.host, plan.proxyPort), ports);
    } catch (error) {
      log.debug(`pod ${namespace}/${name} cannot be audited: ${reasonOf(error)}`);
      return "unknown";
    }
  }
}
