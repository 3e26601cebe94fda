import type { CallTarget, Environment } from "../cni/environment";
import type { NetworkConfig } from "../cni/network-config";
import type { CniVersion } from "../cni/versions";
import type { Recorder } from "../host/call-log";
import type { Host } from "../host/port";

/** A call that has passed the checks common to all verbs. */
export interface Call {
  readonly host: Host;
  readonly env: Environment;
  readonly target: CallTarget;
  /** Descriptor of the pod's network namespace; -1 for a verb that does not enter it. */
  readonly namespace: number;
  readonly config: NetworkConfig;
  readonly version: CniVersion;
  readonly record: Recorder;
}
