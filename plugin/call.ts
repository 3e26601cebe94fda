import type { CallTarget, Environment } from "../cni/environment";
import type { NetworkConfig } from "../cni/network-config";
import type { CniVersion } from "../cni/versions";
import type { ApiServer, Transport } from "../kubernetes/client";
import type { KubeconfigSource } from "../kubernetes/kubeconfig";
import type { FileId } from "./files/port";
import type { HostPrograms } from "./iptables/host";
import type { Kernel } from "./netlink/port";
import type { Recorder } from "./record";

/** The world as the verbs see it; main.ts makes the real one, tests a fake one. */
export interface World {
  readonly kernel: Kernel;
  readonly host: HostPrograms;
  /** `whileWaiting` is run once, when there is nothing to do but wait for the server. */
  readonly connect: (server: ApiServer, whileWaiting: () => void) => Transport;
  /** How a kubeconfig is read. */
  readonly kubeconfig: KubeconfigSource;
  /** Writes to standard error. */
  readonly warn: (line: string) => unknown;
  readonly now: () => Date;
  /** Milliseconds since the process started. */
  readonly elapsed: () => number;
  /** Calls back where the process is about to end although no result was printed. */
  readonly onIdle: (callback: () => void) => unknown;
  /** Which file a path leads to. @throws where it leads nowhere */
  readonly identify: (path: string) => FileId;
}

/** One call that has passed the checks every verb shares. */
export interface Call {
  readonly env: Environment;
  readonly target: CallTarget;
  readonly config: NetworkConfig;
  readonly version: CniVersion;
  readonly record: Recorder;
}
